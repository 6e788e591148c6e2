"""Identifiers of publications: fields become typed, checked values with their provenance, and values become fields again. No I/O.

Total and idempotent (I7): no text raises, and a canonical value that is read again stays the same. `doi`, `isbn`, `issn`, `arxiv` and
`pmid` each know one standard; `configured` makes a kind from a settings table; `kinds` combines all kinds of a library; `typed_identifiers`
reads whole records of either version and converts between flat fields and the typed list. docs/identifiers.md explains the rules.
"""
