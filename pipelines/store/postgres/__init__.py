"""The staged tables in a Postgres database: a schema per library, and one with views over all of them.

A snapshot is copied into new tables, which get their keys and indexes and then replace the old ones in one transaction.
"""
