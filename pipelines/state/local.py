"""The state in the SQLite file that the processes on one data folder share.

There is one connection for each process and purpose, opened late.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from pipelines.disk_space import is_full
from pipelines.errors import StorageError
from pipelines.file_access import make_file, make_private_file
from pipelines.state.leases import LeaseTable
from pipelines.state.store import Moment, OneConnection, Session, Ticking
from pipelines.state.tables import VERSION, check_moved, prepare, version_of

LOCK_SECONDS = 30.0
"""Seconds to wait for other writers of the file; each of them needs well under a millisecond."""

_AGAIN_SECONDS = 0.01

LOG_PAGES = 4000
"""Pages of 4 KiB that SQLite collects in its log until it writes them into the file and waits for the disk. A request takes six of them, so
that its own 1000 would let a quick backup wait several times a second."""


class LocalState:
    """The state in the file `path`. Nothing is opened yet.

    `private`: only this user may open the file, whatever `group` says.
    """

    is_own = True
    identity = ""

    def __init__(self, path: Path, *, private: bool = False) -> None:
        self.path = path
        self.private = private

    def fence(self, tenant: str, data: str) -> int:  # noqa: ARG002
        """None: the lock file of the data folder is the lease."""
        return 0

    @property
    def place(self) -> str:
        """The file."""
        return str(self.path)

    def open(self, clock: Ticking, *, durable: bool = False) -> SqliteStore:
        """The tables for one purpose, on a connection of their own."""
        return SqliteStore(self, clock, durable=durable)

    def lease_table(self) -> LeaseTable:
        """Leases for what processes share beyond a data folder, whose own lease is a lock file."""
        own = self.open(time)
        return LeaseTable(own.transaction, own.close, self.place)

    def lease(self, tenant: str, data: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Nothing: the lock file of the data folder is the lease."""
        return nullcontext()

    def leased(self, tenants: Collection[str], data: str) -> set[str]:  # noqa: ARG002
        """None: the lock file of the data folder is the lease."""
        return set()

    def renew_leases(self) -> bool:
        """Not needed: the lock file of the data folder is the lease."""
        return False

    def close(self) -> None:
        """Nothing: each store closes its own connection."""


class SqliteStore(OneConnection[sqlite3.Connection]):
    """One connection to the SQLite file. `durable`: a write survives a loss of power too, at the price of waiting for the disk."""

    taken = "taken"
    allowance = 0.0

    def __init__(self, state: LocalState, clock: Ticking, *, durable: bool) -> None:
        super().__init__()
        self._state = state
        self._path = state.path
        self._durable = durable
        self._clock = clock

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Write everything or nothing, while no other process writes."""
        with self._lock:
            try:
                db = self._connection = self._connection or self._open()
                try:
                    db.execute("BEGIN IMMEDIATE")
                    yield cast("Session", db)
                    db.execute("COMMIT")
                finally:
                    if db.in_transaction:
                        db.rollback()
            except sqlite3.Error as error:
                raise _storage_error(self._path, error) from error

    def moment(self, session: Session, library: str) -> Moment:  # noqa: ARG002
        """The time of the machine's monotonic clock: one machine at a time works on a data folder. A transaction excludes all others."""
        now = self._clock.monotonic()
        return Moment(now, asked_at=now)

    def read(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query; who only reads has no lock."""
        with self._lock:
            try:
                db = self._connection = self._connection or self._open()
                return db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise _storage_error(self._path, error) from error

    def stream(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield rows while they are read, on a connection of its own."""
        if not self._path.exists():
            return
        self.read("SELECT 1", ())  # this creates the table
        with closing(sqlite3.connect(self._path, timeout=LOCK_SECONDS, check_same_thread=False)) as db:
            yield from db.execute(query, values)

    def _open(self) -> sqlite3.Connection:
        (make_private_file if self._state.private else make_file)(self._path)
        db = sqlite3.connect(self._path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._write_ahead(db)
            db.execute(
                f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}"
            )  # a killed process loses nothing either way
            db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
            tables = _SqliteTables(db)
            if version_of(tables) != VERSION:
                db.execute("BEGIN IMMEDIATE")
                prepare(tables, str(self._path))
                db.execute("COMMIT")
            check_moved(tables, str(self._path))
        except BaseException:
            db.close()
            raise
        return db

    def _write_ahead(self, db: sqlite3.Connection) -> None:
        """Turn WAL on. If another process is doing the same, SQLite does not wait but refuses at once."""
        Retrying(
            sleep=self._clock.sleep,
            retry=retry_if_exception(
                lambda error: isinstance(error, sqlite3.Error) and _code(error) == sqlite3.SQLITE_BUSY
            ),
            stop=stop_after_attempt(int(LOCK_SECONDS / _AGAIN_SECONDS)),
            wait=wait_fixed(_AGAIN_SECONDS),
            reraise=True,
        )(db.execute, "PRAGMA journal_mode = WAL")


class _SqliteTables:
    numbered = "INTEGER PRIMARY KEY AUTOINCREMENT"
    is_shared = False

    def __init__(self, db: sqlite3.Connection) -> None:
        self.execute = db.execute

    def has_table(self, name: str) -> bool:
        return self.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


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


def _storage_error(path: Path, error: sqlite3.Error) -> StorageError:
    code = sqlite3.SQLITE_FULL if _code(error) == sqlite3.SQLITE_IOERR and is_full(path.parent) else _code(error)
    remedy = _REMEDIES.get(code, "Is its disk in order?")
    return StorageError(f"The state in {path} could not be read or written: {error}. {remedy}")
