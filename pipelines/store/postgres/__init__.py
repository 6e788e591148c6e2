"""The staged tables in a Postgres database: a schema per library, and one with views over all of them.

A snapshot is copied beside a library's tables, compared with them on the server, and what differs is written in one transaction.
"""
