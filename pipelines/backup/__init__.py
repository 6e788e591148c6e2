"""The backup: read a library, prove the reading, fetch its files, stage its tables, publish the snapshot, load it into Postgres."""
