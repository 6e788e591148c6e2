"""What the service remembers, in SQLite: SQL lives here and nowhere else, API versions do not exist here."""
