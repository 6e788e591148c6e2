"""Bookferry's Dagster resources: configuration in, plain object out; no requests and no SQL here."""
