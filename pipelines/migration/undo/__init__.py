"""Undoing a plan: what the journal says we wrote and nobody changed since."""
