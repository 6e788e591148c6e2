"""The work list of a backup's files: which contents are wanted, where they are to be had, and what became of each.

A SQLite file in the folder of the capture, so that memory does not grow with the library (I11) and a run that was killed goes on with what
is left (I9). It holds signed addresses, as the raw payloads do, and goes with all else that is no table when the snapshot is published.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import msgspec

from pipelines.records.files import UNSURE, FileReference
from pipelines.store.durable import storage_errors

FILE_LIST = "files.db"

AT_ONCE = 500
"""Contents that are looked at together."""


class State(IntEnum):
    """What became of a content so far."""

    WAITING = 0
    UNDER_WAY = 1
    WITHOUT_ADDRESS = 2
    """Named without an address: the service is asked for one after the listing."""
    CLAIMED = 3
    """Kept by an earlier run, unless the blob is gone."""
    KEPT = 4
    FAILED = 5
    POSTPONED = 6
    """Failed in a way that may pass: tried again after the listing."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One content to fetch. `sha256`, `bytes` and `etag` are what an earlier snapshot has under the same key."""

    reference: FileReference
    sha256: str | None
    bytes: int | None
    etag: str | None


@dataclass(frozen=True, slots=True)
class Known:
    """One content that an earlier snapshot has, or what became of one of this run's."""

    content_key: str
    sha256: str | None
    bytes: int | None
    etag: str | None
    problem: str | None = None
    """Why it could not be had, where it could not."""


@dataclass(frozen=True, slots=True)
class FileListCounts:
    """Sums over the contents of a list, each counted once."""

    new: int
    """Fetched by this run."""
    bytes: int
    """Of all that are kept."""


_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS files (
        number INTEGER PRIMARY KEY,
        content_key TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL, publication_id INTEGER, asset_id INTEGER, size INTEGER,
        address TEXT, since REAL NOT NULL,
        state INTEGER NOT NULL, new INTEGER NOT NULL DEFAULT 0,
        sha256 TEXT, bytes INTEGER, etag TEXT, problem TEXT
    )""",
    "CREATE INDEX IF NOT EXISTS files_by_state ON files (state)",
    """CREATE TABLE IF NOT EXISTS known (
        content_key TEXT PRIMARY KEY, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, etag TEXT
    ) WITHOUT ROWID""",
)

_ADD = f"""
    INSERT INTO files (content_key, kind, publication_id, asset_id, size, address, since, state, sha256, bytes, etag)
    SELECT wanted.*,
        CASE WHEN known.sha256 IS NOT NULL AND wanted.content_key NOT GLOB '[{UNSURE}]*' THEN {State.CLAIMED:d}
             WHEN wanted.address IS NULL THEN {State.WITHOUT_ADDRESS:d}
             ELSE {State.WAITING:d} END,
        known.sha256, known.bytes, known.etag
    FROM (SELECT ? AS content_key, ?, ?, ?, ?, ? AS address, ?) AS wanted LEFT JOIN known USING (content_key)
    WHERE true
    ON CONFLICT (content_key) DO UPDATE SET
        address = excluded.address, since = excluded.since, kind = excluded.kind, publication_id = excluded.publication_id,
        asset_id = excluded.asset_id,
        state = CASE WHEN files.state = {State.WITHOUT_ADDRESS:d} THEN {State.WAITING:d} ELSE files.state END
    WHERE excluded.address IS NOT NULL AND files.state IN ({State.WAITING:d}, {State.WITHOUT_ADDRESS:d}, {State.POSTPONED:d})
"""  # noqa: S608  numbers of ours
"""The newest address of a content counts: it lasts longest."""

_WANTED = "content_key, kind, publication_id, asset_id, size, address, sha256, bytes, etag"


class FileList:
    """The list in the folder of a capture. Safe to use from several threads of one process.

    `now`: seconds on any clock that does not go back. Raises `StorageError` where the file cannot be used.
    """

    def __init__(self, folder: Path, now: float) -> None:
        self._path = folder / FILE_LIST
        self._lock = threading.Lock()
        with storage_errors(self._path):
            self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", *_SCHEMA):
                self._database.execute(statement)
        with (
            self._transaction() as database
        ):  # what a process that died left: begun is not done, and done is looked at again
            database.execute("UPDATE files SET state = ? WHERE state = ?", (State.WAITING, State.UNDER_WAY))
            database.execute("UPDATE files SET state = ? WHERE state = ?", (State.CLAIMED, State.KEPT))
            database.execute("UPDATE files SET since = ? WHERE state = ?", (now, State.WAITING))

    @property
    def is_new(self) -> bool:
        """Whether it has not been told yet what earlier snapshots have."""
        with self._transaction() as database:
            return bool(database.execute("PRAGMA user_version").fetchone() == (0,))

    def know(self, contents: Iterable[Known]) -> None:
        """Take in what earlier snapshots have, once, the newest first: the first that tells of a content counts."""
        rows = ((one.content_key, one.sha256, one.bytes, one.etag) for one in contents)
        with self._transaction() as database:
            database.executemany("INSERT OR IGNORE INTO known VALUES (?, ?, ?, ?)", rows)
            database.execute("PRAGMA user_version = 1")

    def add(self, references: Iterable[FileReference], now: float) -> None:
        """Want these contents, unless the list has them."""
        rows = [
            (one.content_key, one.kind, one.publication_id, one.asset_id, one.size, one.address, now)
            for one in references
        ]
        with self._transaction() as database:
            database.executemany(_ADD, rows)

    def take(self) -> Wanted | None:
        """The content that has waited longest, which is under way from now on; none where none waits."""
        with self._transaction() as database:
            row = database.execute(
                f"SELECT {_WANTED} FROM files WHERE state = ? ORDER BY number LIMIT 1",  # noqa: S608  names of ours
                (State.WAITING,),
            ).fetchone()
            if row is None:
                return None
            database.execute("UPDATE files SET state = ? WHERE content_key = ?", (State.UNDER_WAY, row[0]))
            reference = FileReference(*row[:6])
            return Wanted(reference, *row[6:])

    def kept(self, found: Known, *, new: bool) -> None:
        """A content is a blob. `new`: it was fetched now."""
        with self._transaction() as database:
            database.execute(
                "UPDATE files SET state = ?, new = max(new, ?), sha256 = ?, bytes = ?, etag = ?, problem = NULL WHERE content_key = ?",
                (State.KEPT, new, found.sha256, found.bytes, found.etag, found.content_key),
            )

    def failed(self, content_key: str, problem: str, *, passing: bool) -> None:
        """A content could not be had. `passing`: it may be the next time."""
        state = State.POSTPONED if passing else State.FAILED
        with self._transaction() as database:
            database.execute(
                "UPDATE files SET state = ?, problem = ? WHERE content_key = ?", (state, problem, content_key)
            )

    def move(self, old: State, new: State, *, kind: str | None = None, problem: str | None = None) -> None:
        """All contents of one state, or those of a kind, get another; `problem` is for those that have none."""
        with self._transaction() as database:
            database.execute(
                "UPDATE files SET state = ?, problem = coalesce(problem, ?) WHERE state = ? AND kind = coalesce(?, kind)",
                (new, problem, old, kind),
            )

    def waiting_since(self) -> float | None:
        """When the content that has waited longest was named; none where none waits."""
        with self._transaction() as database:
            row = database.execute(
                "SELECT since FROM files WHERE state = ? ORDER BY number LIMIT 1", (State.WAITING,)
            ).fetchone()
        return None if row is None else float(row[0])

    def count(self, *states: State) -> int:
        """Contents in these states."""
        marks = ", ".join("?" * len(states))
        with self._transaction() as database:
            [(number,)] = database.execute(f"SELECT count(*) FROM files WHERE state IN ({marks})", states).fetchall()  # noqa: S608
        return int(number)

    def claimed(self) -> Iterator[list[Known]]:
        """What is claimed to be kept, some at a time; each is to be `confirmed` or `doubted` before the next come."""
        after = 0
        while True:
            with self._transaction() as database:
                rows = database.execute(
                    "SELECT number, content_key, sha256, bytes, etag FROM files WHERE state = ? AND number > ? ORDER BY number LIMIT ?",
                    (State.CLAIMED, after, AT_ONCE),
                ).fetchall()
            if not rows:
                return
            after = rows[-1][0]
            yield [Known(*row[1:]) for row in rows]

    def settle(self, there: Iterable[str], gone: Iterable[str]) -> None:
        """Of these contents the blobs are there, of those they are not, so that they are wanted again."""
        with self._transaction() as database:
            database.executemany(
                "UPDATE files SET state = ? WHERE content_key = ?", [(State.KEPT, one) for one in there]
            )
            database.executemany(
                "UPDATE files SET state = CASE WHEN address IS NULL THEN ? ELSE ? END, sha256 = NULL, bytes = NULL, etag = NULL"
                " WHERE content_key = ?",
                [(State.WITHOUT_ADDRESS, State.WAITING, one) for one in gone],
            )

    def outcomes(self, content_keys: Sequence[str]) -> dict[str, Known]:
        """What became of these contents, of those that are kept or failed."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT state, content_key, sha256, bytes, etag, problem FROM files"
                " WHERE state IN (?, ?) AND content_key IN (SELECT value FROM json_each(?))",
                (State.KEPT, State.FAILED, msgspec.json.encode(content_keys).decode()),
            ).fetchall()
        return {
            key: Known(key, *content) if state == State.KEPT else Known(key, None, None, None, problem)
            for state, key, *content, problem in rows
        }

    def tally(self) -> FileListCounts:
        """The sums."""
        with self._transaction() as database:
            [(new,)] = database.execute("SELECT count(*) FROM files WHERE new AND state = ?", (State.KEPT,)).fetchall()
            [(size,)] = database.execute(
                "SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT sha256, bytes FROM files WHERE state = ?)",
                (State.KEPT,),
            ).fetchall()
        return FileListCounts(new, size)

    def close(self) -> None:
        """Close the file."""
        with self._lock, storage_errors(self._path):
            self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, storage_errors(self._path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
