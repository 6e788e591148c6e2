"""The data of a migration: plans, the journal, and records in comparable form."""
