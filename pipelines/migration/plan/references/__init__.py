"""The references of records: to which records of the target they lead, and which of them have to wait until those are there."""
