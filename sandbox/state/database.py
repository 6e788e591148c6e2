"""Connections and transactions.

A state file has a connection for each concurrent reader, and one writer at a time. State in memory has exactly one connection,
which the threads use in turn: SQLite's shared cache would raise "table is locked".
"""

from __future__ import annotations

import queue
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

_SCHEMA_VERSION = 9
_BUSY_SECONDS = 30


class Database:
    """SQLite in a file, or in memory if ``path`` is None. A thread uses one ``read`` or ``write`` at a time."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._opened = False
        self._taking = threading.Lock()
        self._writing = threading.Lock()
        with self._lent() as connection:
            _prepare(connection)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A consistent view of the state for several queries."""
        with self._lent() as connection, _transaction(connection, "BEGIN"):
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all changes of the block or, if it raises, none."""
        with self._writing, self._lent() as connection, _transaction(connection, "BEGIN IMMEDIATE"):
            yield connection

    def folder(self) -> Path:
        """The folder for the bytes of uploads. The first call makes it, inside a write, so that there is only one."""
        if self._path is not None:
            folder = self._path.with_name(f"{self._path.name}-files")
            folder.mkdir(exist_ok=True)
            return folder
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="library-sandbox-", ignore_cleanup_errors=True)
        return Path(self._temporary.name)

    def close(self) -> None:
        """Closes every idle connection and removes a temporary folder. A busy connection belongs to a request that nobody waits for."""
        if self._temporary is not None:
            self._temporary.cleanup()
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    @contextmanager
    def _lent(self) -> Iterator[sqlite3.Connection]:
        connection = self._take()
        try:
            yield connection
        finally:
            self._idle.put(connection)

    def _take(self) -> sqlite3.Connection:
        with self._taking:
            with suppress(queue.Empty):
                return self._idle.get_nowait()
            if self._path is not None or not self._opened:
                self._opened = True
                return _connect(self._path)
        return self._idle.get()


def _connect(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Creates the tables of a new state in one transaction, so that a kill leaves none of them half made."""
    with _transaction(connection, "BEGIN IMMEDIATE"):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in {0, _SCHEMA_VERSION}:
            raise sqlite3.DatabaseError("another version of the sandbox made it; delete it and the folder beside it")
        if not version:
            for statement in _statements(files("sandbox.state").joinpath("schema.sql").read_text("utf-8")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
