"""Connections to the configured database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pipelines.errors import ConfigurationError, TemporaryError
from pipelines.settings.postgres_address import PostgresAddress
from pipelines.state.postgres_errors import connection_error

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
    "SELECT set_config(name, 'lz4', false) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)",
)
"""A load has no time limit, whatever this user's default is. Names refer to no other schema by accident. Indexes are built in memory. The
server compiles no query: those of a load are short, and a whole load is quicker without. Long texts are packed by lz4, where the server
has it (from Postgres 14 on, unless it was built without): the default takes longer."""


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

    def copy(self, target: str, rows: Iterable[bytes]) -> None:
        """Append rows in CSV to a table, whose quoted name and columns are given. An error of `rows` leaves none of them."""
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {target} FROM STDIN (FORMAT csv)".encode()) as copy,
        ):
            for content in rows:
                copy.write(content)

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
        try:
            connection = psycopg.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            raise connection_error(self.place, self.secret, error, TemporaryError) from None
        with connection:
            if (version := connection.info.server_version // 10_000) < OLDEST_VERSION:
                raise ConfigurationError(
                    f"{self.place} is Postgres {version}; Bookferry needs {OLDEST_VERSION} or newer. Name another server, or set "
                    "`load = false` in [postgres] of bookferry.toml."
                )
            session = Session(connection)
            session.run(*_SESSION_SETTINGS)
            yield session
