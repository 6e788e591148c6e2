"""Connections to the configured database: one kind for statements, one for Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import adbc_driver_postgresql.dbapi
import psycopg
from adbc_driver_manager import Error as CopyError

from pipelines.errors import ConfigurationError
from pipelines.settings.postgres_address import PostgresAddress
from pipelines.store.postgres.postgres_errors import connection_errors

OLDEST_VERSION = 13
"""The oldest supported major version."""

_SESSION_SETTINGS = (
    "SET statement_timeout = 0",
    "SET lock_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    "SET standard_conforming_strings = on",
    "SET TimeZone = 'UTC'",
    "SET client_min_messages = warning",
    "SET search_path = pg_catalog",
    "SET maintenance_work_mem = '256MB'",
    "SET jit = off",
)
"""A load has no time limit, whatever this user's default is. Names refer to no other schema by accident. Indexes are built in memory. The
server compiles no query: those of a load are short, and a whole load is quicker without."""


class Session:
    """One connection. Outside of `transaction`, each statement is durable when it returns."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def run(self, *statements: str) -> None:
        """Execute statements without results, all or none of them."""
        if statements:
            self._connection.execute(";\n".join(statements).encode())

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query with bound values."""
        return self._connection.execute(query.encode(), values or None).fetchall()

    def value(self, query: str, *values: object) -> Any:
        """The first value of the first row."""
        rows = self.rows(query, *values)
        return rows[0][0] if rows else None

    def count(self, statement: str) -> int:
        """Execute a statement. Returns the number of rows that it wrote or removed."""
        return self._connection.execute(statement.encode()).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the block or nothing. Inside another transaction it is a savepoint."""
        with self._connection.transaction():
            yield


class Server:
    """A database by its address. `place` is the address without user and password."""

    def __init__(self, address: str) -> None:
        parsed = PostgresAddress.parse(address)
        self.place = parsed.place
        self.secret = parsed.secret
        self._conninfo = parsed.conninfo

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A connection for statements."""
        with connection_errors(self.place, self.secret):
            connection = psycopg.connect(self._conninfo, autocommit=True)
        with connection:
            if (version := connection.info.server_version // 10_000) < OLDEST_VERSION:
                raise ConfigurationError(
                    f"{self.place} is Postgres {version}; Bookferry needs {OLDEST_VERSION} or newer. Name another server, or set "
                    "`load = false` in [postgres] of bookferry.toml."
                )
            session = Session(connection)
            session.run(*_SESSION_SETTINGS)
            yield session

    @contextmanager
    def copier(self) -> Iterator[Any]:
        """A cursor that takes Arrow batches (ADBC). The block is committed when it ends without an error."""
        with connection_errors(self.place, self.secret):
            connection = adbc_driver_postgresql.dbapi.connect(self._conninfo)
        with connection, connection.cursor() as cursor:
            for statement in _SESSION_SETTINGS:
                cursor.execute(statement)
            connection.commit()
            try:
                cursor.execute("SET default_toast_compression = lz4")
            except CopyError:  # before Postgres 14, or built without lz4: the default takes longer for long texts
                connection.rollback()
            yield cursor
            connection.commit()
