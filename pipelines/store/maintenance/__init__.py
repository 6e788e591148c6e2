"""Work on snapshots that exist: verify, compare, prune, and keep the records of drills and reports."""
