"""The state of the service in SQLite. All SQL is here, and nothing here knows API versions."""
