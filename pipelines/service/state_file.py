"""The SQLite file that the processes on one data folder share: one connection for each process, opened late and closed before a fork."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines.disk_space import is_full
from pipelines.errors import StorageError
from pipelines.file_access import make_file
from pipelines.service.clock import Clock

LOCK_SECONDS = 30.0
"""Seconds to wait for other writers of the file; each of them needs well under a millisecond."""


class StateFile:
    """One connection to the SQLite file for all threads of a process, opened when needed.

    `what` names the content of the file in messages. `durable`: a write survives a loss of power too, at the price of waiting for the disk.
    `upgrade` gets each new connection after the schema, to change what an earlier version left.
    The connection is closed before every fork: SQLite in the child would take the locks of the parent's connection for its own.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        schema: Sequence[str],
        *,
        what: str = "The budget of requests",
        durable: bool = False,
        upgrade: Callable[[sqlite3.Connection], None] = lambda _: None,
    ) -> None:
        self._path = path
        self._schema = schema
        self._what = what
        self._durable = durable
        self._upgrade = upgrade
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        after = weakly(self._after_fork)
        os.register_at_fork(before=weakly(self._before_fork), after_in_parent=after, after_in_child=after)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write everything or nothing, while no other process writes."""
        with self._lock:
            try:
                db = self._connection = self._connection or self._open()
                try:
                    db.execute("BEGIN IMMEDIATE")
                    yield db
                    db.execute("COMMIT")
                finally:
                    if db.in_transaction:
                        db.rollback()
            except sqlite3.Error as error:
                raise _storage_error(self._what, self._path, error) from error

    def close(self) -> None:
        """Close the connection; the next transaction opens another."""
        with self._lock:
            self._disconnect()

    def _open(self) -> sqlite3.Connection:
        make_file(self._path)
        db = sqlite3.connect(self._path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._write_ahead(db)
            db.execute(
                f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}"
            )  # a killed process loses nothing either way
            for statement in self._schema:
                db.execute(statement)
            self._upgrade(db)
        except BaseException:
            db.close()
            raise
        return db

    def _write_ahead(self, db: sqlite3.Connection) -> None:
        """Turn WAL on. If another process is doing the same, SQLite does not wait but refuses at once."""
        deadline = self._clock.monotonic() + LOCK_SECONDS
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or self._clock.monotonic() > deadline:
                    raise
                self._clock.sleep(0.01)
            else:
                return

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _before_fork(self) -> None:
        self._lock.acquire()
        self._disconnect()

    def _after_fork(self) -> None:
        self._lock.release()


def weakly(method: Callable[[], None]) -> Callable[[], None]:
    """Returns a function that calls the method while its object lives.

    A function that is registered for forks can never be unregistered.
    """
    reference = weakref.WeakMethod(method)

    def call() -> None:
        if (bound := reference()) is not None:
            bound()

    return call


_REMEDIES = {
    sqlite3.SQLITE_BUSY: "Another program keeps it locked: end that program, then run the command again.",
    sqlite3.SQLITE_FULL: "The disk is full: free some space, then run the command again.",
    sqlite3.SQLITE_READONLY: "It may only be read: let this user write to the file and its folder.",
    sqlite3.SQLITE_CANTOPEN: "Does its folder exist, and may this user write there?",
    sqlite3.SQLITE_CORRUPT: "It is damaged: restore it from a copy.",
    sqlite3.SQLITE_NOTADB: "It is damaged or something else: restore it from a copy, or move it away.",
}


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _storage_error(what: str, path: Path, error: sqlite3.Error) -> StorageError:
    code = sqlite3.SQLITE_FULL if _code(error) == sqlite3.SQLITE_IOERR and is_full(path.parent) else _code(error)
    remedy = _REMEDIES.get(code, "Is its disk in order?")
    return StorageError(f"{what} in {path} could not be read or written: {error}. {remedy}")
