"""Undoing a plan: takes back the writes that the journal has of it, unless people changed them since."""
