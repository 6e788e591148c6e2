"""Identifiers of publications: what a field holds becomes typed, checked values with their provenance, and back. Pure; no I/O.

Total and idempotent (I7): no text raises, and what comes out of a field, put into that field, comes out again. The modules `doi`, `isbn`,
`issn`, `arxiv` and `pmid` each know one standard, `configured` makes a kind from a settings table, `kinds` holds them together, `records`
takes whole records of either version and leads back from v3 to v2. docs/identifiers.md says the same for people.
"""
