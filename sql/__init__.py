"""Bookferry's SQL as files: example queries over the staged tables, read through importlib.resources."""
