"""The backup: read a library, prove the reading, fetch its files, stage its tables and publish the snapshot."""
