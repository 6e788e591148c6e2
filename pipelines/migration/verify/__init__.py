"""Verifying a plan: the target, read again, compared with the plan."""
