"""Verifying a migration: the target, read again, against the plan."""
