"""The shapes of records: which fields the service's records have, with which values."""
