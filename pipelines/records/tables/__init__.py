"""Descriptions of all tables: `publications`, `other_resources`, and `registry`, which finds a table by its name or its resource."""
