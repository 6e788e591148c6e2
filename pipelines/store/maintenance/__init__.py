"""Work on published snapshots: verification, comparison, retention, and the results of drills and reports."""
