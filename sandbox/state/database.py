"""The state: SQLite in memory, with one connection that all threads use in turn.

A request needs it for a few milliseconds, and the service grants one request a second.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

_CLOSE_SECONDS = 5


class Database:
    """SQLite in memory, and a folder for the bytes of uploads."""

    def __init__(self) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.executescript(files("sandbox.state").joinpath("schema.sql").read_text("utf-8"))

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All changes of the block or, if it raises, none. A transaction within another is a part of it."""
        with self._lock:
            if self._connection.in_transaction:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def folder(self) -> Path:
        """The folder for the bytes of uploads. The first call makes it."""
        with self._lock:
            if self._temporary is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="library-sandbox-", ignore_cleanup_errors=True)
        return Path(self._temporary.name)

    def close(self) -> None:
        """Closes the state and removes a temporary folder. A request that uses it for long belongs to nobody who waits for it."""
        if self._temporary is not None:
            self._temporary.cleanup()
        if self._lock.acquire(timeout=_CLOSE_SECONDS):
            self._connection.close()
            self._lock.release()
