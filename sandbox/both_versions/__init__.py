"""Behaviour that version 2 and version 3 of the API share."""
