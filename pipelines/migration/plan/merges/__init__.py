"""Merges of records of one name: which are proposed, which a person decided, and how the target takes them."""
