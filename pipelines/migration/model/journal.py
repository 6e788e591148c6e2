"""What was written to a library, kept before and after each request (I8): in `state.db`, for all plans of this data folder.

An entry is one write that must not happen twice: a record created or changed, a file attached, a cover set. It is intended before its
request leaves and settled by the answer; one that stays intended has an answer that nobody saw.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from pipelines.service.clock import Clock
from pipelines.service.state_file import StateFile

CREATE, PATCH, ASSET, COVER = "create", "patch", "asset", "cover"
"""Kinds of writes."""

RECORD_WRITES = (CREATE, PATCH)
"""Kinds of writes of a record itself; the others write its files."""

INTENDED, DONE, REFUSED, PARKED, UNDONE = "intended", "done", "refused", "parked", "undone"
"""States. Refused: the service said no. Parked: nobody can tell whether it happened, a person must look. Undone: taken back."""

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS migration_writes (
        number INTEGER PRIMARY KEY,
        source TEXT NOT NULL, target TEXT NOT NULL, plan TEXT NOT NULL,
        resource TEXT NOT NULL, source_id INTEGER NOT NULL, kind TEXT NOT NULL, part TEXT NOT NULL,
        state TEXT NOT NULL,
        target_id INTEGER, asset_id INTEGER,
        content TEXT, wanted TEXT, held TEXT, before TEXT,
        status INTEGER, message TEXT,
        begun_at TEXT NOT NULL, ended_at TEXT,
        UNIQUE (source, target, resource, source_id, kind, part, plan)
    )""",
    "CREATE INDEX IF NOT EXISTS migration_writes_state ON migration_writes (target, state)",
    "CREATE INDEX IF NOT EXISTS migration_writes_target ON migration_writes (target, resource, target_id)",
    "CREATE INDEX IF NOT EXISTS migration_writes_plan ON migration_writes (plan, state)",
)

_COLUMNS = (
    "number, plan, resource, source_id, kind, part, state, target_id, asset_id, content, wanted, held, before, status, message, "
    "begun_at, ended_at"
)


class FailedWriteError(Exception):
    """This write was refused or parked, as the journal knows; the others go on."""


class JournalEntry(msgspec.Struct, kw_only=True, frozen=True):
    """One write. `part` tells the files of a record apart, and is empty for the record itself."""

    number: int
    plan: str
    resource: str
    source_id: int
    kind: str
    part: str
    state: str
    target_id: int | None
    """The record in the target; for a file, the record that has it."""
    asset_id: int | None
    content: str | None
    """Digest of what is written: entries with the same cannot be told apart by looking at the service."""
    wanted: dict[str, str | None]
    """Field → digest of what was sent, as it is compared."""
    held: dict[str, str | None]
    """Field → digest of what the service then held."""
    before: dict[str, Any]
    """Field → what the target held before a patch."""
    status: int | None
    message: str | None
    begun_at: str
    ended_at: str | None


class WrittenRecord(msgspec.Struct, kw_only=True):
    """What all plans made of one record of the source."""

    source_id: int
    target_id: int
    wanted: dict[str, str | None]
    held: dict[str, str | None]


class Journal:
    """The writes from one library to another. Both are named by their addresses: tenants may be renamed."""

    def __init__(self, path: Path, source: str, target: str, clock: Clock) -> None:
        self._path = path
        self._pair = (source, target)
        self._clock = clock
        self._file = StateFile(path, clock, _SCHEMA, what="The journal of writes", durable=True)

    def intend(
        self,
        plan: str,
        resource: str,
        source_id: int,
        kind: str,
        part: str = "",
        *,
        target_id: int | None = None,
        content: str | None = None,
        wanted: dict[str, str | None] | None = None,
        before: dict[str, Any] | None = None,
    ) -> int:
        """Note down, durably, that a write is about to happen; the number of its entry. Anew where it was refused, parked or undone."""
        key = (*self._pair, plan, resource, source_id, kind, part)
        values = (target_id, content, _json(wanted), _json(before), self._now(), INTENDED)
        with self._file.transaction() as db:
            (number,) = db.execute(
                "INSERT INTO migration_writes (source, target, plan, resource, source_id, kind, part, target_id, content, wanted, "
                "before, begun_at, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET state = excluded.state, target_id = excluded.target_id, asset_id = NULL, "
                "content = excluded.content, wanted = excluded.wanted, "
                "before = iif(migration_writes.state = ?, excluded.before, coalesce(migration_writes.before, excluded.before)), "
                "held = NULL, status = NULL, message = NULL, begun_at = excluded.begun_at, ended_at = NULL RETURNING number",
                (*key, *values, UNDONE),
            ).fetchone()
        return int(number)

    def done(
        self, number: int, *, target_id: int, asset_id: int | None = None, held: dict[str, str | None] | None = None
    ) -> None:
        """The write happened."""
        self._settle(number, DONE, target_id=target_id, asset_id=asset_id, held=_json(held), status=None, message=None)

    def refused(self, number: int, message: str, status: int | None = None) -> None:
        """The service said no: nothing was written."""
        self._settle(number, REFUSED, message=message, status=status)

    def parked(self, number: int, message: str) -> None:
        """Nobody can tell whether it happened."""
        self._settle(number, PARKED, message=message)

    def undone(self, *numbers: int) -> None:
        """These were taken back, all of them at once."""
        with self._file.transaction() as db:
            db.executemany(
                "UPDATE migration_writes SET state = ?, ended_at = ? WHERE number = ?",
                [(UNDONE, self._now(), number) for number in numbers],
            )

    def withdraw(self, number: int) -> None:
        """It never left: as if it had not been intended."""
        with self._file.transaction() as db:
            db.execute("DELETE FROM migration_writes WHERE number = ? AND state = ?", (number, INTENDED))

    def _settle(self, number: int, state: str, **columns: Any) -> None:
        changes = ", ".join(f"{name} = ?" for name in ("state", *columns, "ended_at"))
        with self._file.transaction() as db:
            db.execute(
                f"UPDATE migration_writes SET {changes} WHERE number = ?",  # noqa: S608  names of ours
                (state, *columns.values(), self._now(), number),
            )

    def of_record(self, resource: str, source_id: int) -> list[JournalEntry]:
        """All that any plan wrote of one record, oldest first."""
        return self._entries(
            "source = ? AND target = ? AND resource = ? AND source_id = ?", (*self._pair, resource, source_id)
        )

    def of_plan(self, plan: str, *states: str) -> Iterator[JournalEntry]:
        """The entries of one plan in these states, or all, oldest first; a thousand in memory."""
        last = 0
        wanted = states or (INTENDED, DONE, REFUSED, PARKED, UNDONE)
        marks = ", ".join("?" * len(wanted))
        while found := self._entries(
            f"source = ? AND target = ? AND plan = ? AND number > ? AND state IN ({marks})",
            (*self._pair, plan, last, *wanted),
            most=1000,
        ):
            yield from found
            last = found[-1].number

    def became(self, resource: str, source_id: int) -> int | None:
        """The record of the target that an earlier write made or changed for this one of the source; the last one counts."""
        with self._file.transaction() as db:
            row = db.execute(
                "SELECT target_id FROM migration_writes WHERE source = ? AND target = ? AND resource = ? AND source_id = ? AND state = ? "
                "AND kind IN (?, ?) ORDER BY number DESC LIMIT 1",
                (*self._pair, resource, source_id, DONE, *RECORD_WRITES),
            ).fetchone()
        return row[0] if row else None

    def known(self, resource: str, ids: Iterable[int]) -> set[int]:
        """Which of these records of the target are what entries made or changed."""
        wanted = list(ids)
        marks = ", ".join("?" * len(wanted))
        with self._file.transaction() as db:
            rows = db.execute(
                f"SELECT target_id FROM migration_writes WHERE target = ? AND resource = ? AND target_id IN ({marks}) "  # noqa: S608
                f"AND kind IN ('{CREATE}', '{PATCH}') AND state IN ('{DONE}', '{INTENDED}')",
                (self._pair[1], resource, *wanted),
            ).fetchall()
        return {number for (number,) in rows}

    def created_after(self, resource: str, moment: datetime) -> set[int]:
        """Some records of the target that were created later than that, and are known to be."""
        with self._file.transaction() as db:
            rows = db.execute(
                "SELECT target_id FROM migration_writes WHERE target = ? AND resource = ? AND state = ? AND kind = ? AND ended_at > ? "
                "ORDER BY number DESC LIMIT 50",
                (self._pair[1], resource, DONE, CREATE, moment.isoformat(timespec="milliseconds")),
            ).fetchall()
        return {number for (number,) in rows}

    def twins(self, resource: str, content: str) -> int:
        """How many intended creates have this content: the service's records of it may be any of theirs."""
        with self._file.transaction() as db:
            (count,) = db.execute(
                "SELECT count(*) FROM migration_writes WHERE target = ? AND resource = ? AND state = ? AND kind = ? AND content = ?",
                (self._pair[1], resource, INTENDED, CREATE, content),
            ).fetchone()
        return int(count)

    def counts(self, plan: str) -> dict[tuple[str, str], int]:
        """(kind, state) → entries of a plan."""
        with self._file.transaction() as db:
            rows = db.execute(
                "SELECT kind, state, count(*) FROM migration_writes WHERE source = ? AND target = ? AND plan = ? GROUP BY kind, state",
                (*self._pair, plan),
            ).fetchall()
        return {(kind, state): count for kind, state, count in rows}

    def written(self, resource: str) -> Iterator[WrittenRecord]:
        """What all plans made of each record of the source, in the order of their ids."""
        rows = self._stream(
            "SELECT source_id, target_id, kind, wanted, held FROM migration_writes WHERE source = ? AND target = ? AND resource = ? "
            "AND state = ? AND kind IN (?, ?) ORDER BY source_id, number",
            (*self._pair, resource, DONE, *RECORD_WRITES),
        )
        current: WrittenRecord | None = None
        for source_id, target_id, kind, wanted, held in rows:
            if current is not None and current.source_id != source_id:
                yield current
                current = None
            if current is None or kind == CREATE or current.target_id != target_id:
                current = WrittenRecord(source_id=source_id, target_id=target_id, wanted={}, held={})
            current.wanted |= msgspec.json.decode(wanted) if wanted else {}
            current.held |= msgspec.json.decode(held) if held else {}
        if current is not None:
            yield current

    def told(self, plan: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """These columns of each entry of a plan, oldest first, JSON as text."""
        return self._stream(
            f"SELECT {', '.join(columns)} FROM migration_writes WHERE source = ? AND target = ? AND plan = ? ORDER BY number",  # noqa: S608
            (*self._pair, plan),
        )

    def made(self, resource: str) -> Iterator[tuple[int, int | None]]:
        """The records of the target that any plan of any source created, and the assets that one attached, each with its record."""
        return self._stream(
            "SELECT target_id, asset_id FROM migration_writes WHERE target = ? AND resource = ? AND state = ? AND kind IN (?, ?)",
            (self._pair[1], resource, DONE, CREATE, ASSET),
        )

    def attached_to(self) -> list[int]:
        """Some records of the target to which a file was attached, the last ones first."""
        with self._file.transaction() as db:
            rows = db.execute(
                "SELECT target_id FROM migration_writes WHERE target = ? AND state = ? AND kind = ? ORDER BY number DESC LIMIT 3",
                (self._pair[1], DONE, ASSET),
            ).fetchall()
        return [number for (number,) in rows]

    def last_change(self, plan: str) -> str:
        """When an entry of a plan was last begun or settled; empty where it has none."""
        with self._file.transaction() as db:
            (moment,) = db.execute(
                "SELECT max(max(begun_at, coalesce(ended_at, ''))) FROM migration_writes WHERE source = ? AND target = ? AND plan = ?",
                (*self._pair, plan),
            ).fetchone()
        return moment or ""

    def close(self) -> None:
        """Give the connection up."""
        self._file.close()

    def _entries(self, where: str, values: tuple[Any, ...], most: int = 1_000_000) -> list[JournalEntry]:
        with self._file.transaction() as db:
            rows = db.execute(
                f"SELECT {_COLUMNS} FROM migration_writes WHERE {where} ORDER BY number LIMIT {most}",  # noqa: S608  words of ours
                values,
            ).fetchall()
        return [_entry(row) for row in rows]

    def _stream(self, query: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Rows as they are read, beside writers; nothing is gathered."""
        if not self._path.exists():
            return
        with self._file.transaction():
            pass  # the table is there
        with closing(sqlite3.connect(self._path, timeout=30, check_same_thread=False)) as db:
            yield from db.execute(query, values)

    def _now(self) -> str:
        moment: datetime = self._clock.now()
        return moment.isoformat(timespec="milliseconds")


def is_done(entry: JournalEntry | None) -> bool:
    """Whether there is nothing left to do for it."""
    return entry is not None and entry.state == DONE


def in_doubt(entry: JournalEntry | None) -> bool:
    """Whether it may have happened and nobody knows."""
    return entry is not None and entry.state in (INTENDED, PARKED)


def _entry(row: tuple[Any, ...]) -> JournalEntry:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    for name in ("wanted", "held", "before"):
        values[name] = msgspec.json.decode(values[name]) if values[name] else {}
    return JournalEntry(**values)


def _json(value: dict[str, Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
