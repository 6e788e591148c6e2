"""The staged tables in a Postgres database: a schema for each library, and one with views over all of them.

A snapshot is copied into fresh tables, which get their keys and indexes and then change places with the old ones in one transaction.
"""
