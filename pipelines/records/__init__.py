"""Pure functions over records, and the description of every table; no I/O."""
