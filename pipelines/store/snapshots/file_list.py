"""The file list: the contents that a backup wants, where to fetch them, and the outcome of each.

It is a SQLite file in the capture's folder, so that memory does not grow with the library (I11) and a run continues after a kill (I9). It
has signed addresses, as the raw payloads do. It is deleted with everything else that is not a table when the snapshot is published.
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

from pipelines.file_access import make_file
from pipelines.records.files import UNSURE, FileReference
from pipelines.store.durable import storage_errors
from pipelines.store.snapshots.facts import FileTotals

FILE_LIST = "files.db"


class State(IntEnum):
    """The state of a content."""

    WAITING = 0
    UNDER_WAY = 1
    WITHOUT_ADDRESS = 2
    """Listed without an address: the service is asked for one after the listing."""
    KEPT = 3
    FAILED = 4
    POSTPONED = 5
    """Failed for a temporary reason: tried again after the listing."""


@dataclass(frozen=True, slots=True)
class Known:
    """One content of an earlier snapshot, or the outcome of one of this run."""

    content_key: str
    sha256: str | None
    bytes: int | None
    etag: str | None
    problem: str | None = None
    """Why it could not be fetched, or why it is not the file that readers get: it is packed."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """One content to fetch, and what an earlier snapshot has under the same key."""

    reference: FileReference
    known: Known


_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS files (
        number INTEGER PRIMARY KEY,
        content_key TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL, publication_id INTEGER, asset_id INTEGER, size INTEGER,
        address TEXT,
        state INTEGER NOT NULL, new INTEGER NOT NULL DEFAULT 0,
        sha256 TEXT, bytes INTEGER, etag TEXT, problem TEXT
    )""",
    "CREATE INDEX IF NOT EXISTS files_by_state ON files (state)",
    """CREATE TABLE IF NOT EXISTS known (
        content_key TEXT PRIMARY KEY, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, etag TEXT, problem TEXT
    ) WITHOUT ROWID""",
)

_ADD = f"""
    INSERT INTO files (content_key, kind, publication_id, asset_id, size, address, state, sha256, bytes, etag, problem)
    SELECT wanted.*,
        CASE WHEN wanted.address IS NULL AND (known.sha256 IS NULL OR wanted.content_key GLOB '[{UNSURE}]*')
             THEN {State.WITHOUT_ADDRESS:d} ELSE {State.WAITING:d} END,
        known.sha256, known.bytes, known.etag, known.problem
    FROM (SELECT ? AS content_key, ?, ?, ?, ?, ? AS address) AS wanted LEFT JOIN known USING (content_key)
    WHERE true
    ON CONFLICT (content_key) DO UPDATE SET
        address = excluded.address, kind = excluded.kind, publication_id = excluded.publication_id,
        asset_id = excluded.asset_id,
        state = CASE WHEN files.state = {State.WITHOUT_ADDRESS:d} THEN {State.WAITING:d} ELSE files.state END
    WHERE excluded.address IS NOT NULL AND files.state IN ({State.WAITING:d}, {State.WITHOUT_ADDRESS:d}, {State.POSTPONED:d})
"""  # noqa: S608  numbers of ours
"""The newest address of a content replaces older ones: it lasts longest."""


class FileList:
    """The list in the folder of a capture. Safe to use from several threads of one process.

    Raises `StorageError` where the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_LIST
        self._lock = threading.Lock()
        with storage_errors(self._path):
            make_file(self._path)
            self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", *_SCHEMA):
                self._database.execute(statement)
        with self._transaction() as database:  # of a process that died: repeat unfinished downloads
            database.execute("UPDATE files SET state = ? WHERE state = ?", (State.WAITING, State.UNDER_WAY))

    @property
    def is_new(self) -> bool:
        """Whether the contents of earlier snapshots are still to be added."""
        with self._transaction() as database:
            return bool(database.execute("PRAGMA user_version").fetchone() == (0,))

    def add_known(self, contents: Iterable[Known]) -> None:
        """Add the contents of earlier snapshots, once, the newest first: the first one of a key counts."""
        rows = (
            (content.content_key, content.sha256, content.bytes, content.etag, content.problem) for content in contents
        )
        with self._transaction() as database:
            database.executemany("INSERT OR IGNORE INTO known VALUES (?, ?, ?, ?, ?)", rows)
            database.execute("PRAGMA user_version = 1")

    def add(self, references: Iterable[FileReference]) -> None:
        """Add contents to fetch, unless the list has them."""
        rows = [
            (file.content_key, file.kind, file.publication_id, file.asset_id, file.size, file.address)
            for file in references
        ]
        with self._transaction() as database:
            database.executemany(_ADD, rows)

    def take(self) -> FileTask | None:
        """Take the content that has waited longest, and mark it as under way. Returns None where none waits."""
        with self._transaction() as database:
            row = database.execute(
                "SELECT content_key, kind, publication_id, asset_id, size, address, sha256, bytes, etag, problem FROM files"
                " WHERE state = ? ORDER BY number LIMIT 1",
                (State.WAITING,),
            ).fetchone()
            if row is None:
                return None
            database.execute("UPDATE files SET state = ? WHERE content_key = ?", (State.UNDER_WAY, row[0]))
            return FileTask(FileReference(*row[:6]), Known(row[0], *row[6:]))

    def mark_kept(self, content: Known, *, new: bool) -> None:
        """Record that a content is a blob. `new`: this run fetched it."""
        with self._transaction() as database:
            database.execute(
                "UPDATE files SET state = ?, new = max(new, ?), sha256 = ?, bytes = ?, etag = ?, problem = ? WHERE content_key = ?",
                (State.KEPT, new, content.sha256, content.bytes, content.etag, content.problem, content.content_key),
            )

    def mark_failed(self, content_key: str, problem: str, *, temporary: bool) -> None:
        """Record that a content could not be fetched. `temporary`: a later attempt may succeed."""
        state = State.POSTPONED if temporary else State.FAILED
        with self._transaction() as database:
            database.execute(
                "UPDATE files SET state = ?, problem = ? WHERE content_key = ?", (state, problem, content_key)
            )

    def move(self, old: State, new: State, *, kind: str | None = None, problem: str | None = None) -> None:
        """Change the state of all contents in one state, or of those of one kind. `problem` is for contents without one."""
        with self._transaction() as database:
            database.execute(
                "UPDATE files SET state = ?, problem = coalesce(problem, ?) WHERE state = ? AND kind = coalesce(?, kind)",
                (new, problem, old, kind),
            )

    def count(self, *states: State) -> int:
        """Number of contents in these states."""
        marks = ", ".join("?" * len(states))
        with self._transaction() as database:
            [(number,)] = database.execute(f"SELECT count(*) FROM files WHERE state IN ({marks})", states).fetchall()  # noqa: S608
        return int(number)

    def outcomes(self, content_keys: Sequence[str]) -> dict[str, Known]:
        """Returns content key → outcome, for those of the contents that are stored or failed."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT state, content_key, sha256, bytes, etag, problem FROM files"
                " WHERE state IN (?, ?) AND content_key IN (SELECT value FROM json_each(?))",
                (State.KEPT, State.FAILED, msgspec.json.encode(content_keys).decode()),
            ).fetchall()
        return {
            key: Known(key, sha256, size, etag, problem)
            if state == State.KEPT
            else Known(key, None, None, None, problem)
            for state, key, sha256, size, etag, problem in rows
        }

    def totals(self) -> FileTotals:
        """Returns the totals over the contents, each counted once: the new ones, and number and bytes of all stored ones."""
        with self._transaction() as database:
            [(new,)] = database.execute("SELECT count(*) FROM files WHERE new AND state = ?", (State.KEPT,)).fetchall()
            [(contents, size)] = database.execute(
                "SELECT count(*), coalesce(sum(bytes), 0) FROM (SELECT DISTINCT sha256, bytes FROM files WHERE state = ?)",
                (State.KEPT,),
            ).fetchall()
        return FileTotals(new=new, contents=contents, bytes=size)

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
