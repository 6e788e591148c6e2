"""The journal of writes to a library, in the state, for all plans on it: each write before and after its request (I8).

An entry is one write that must not happen twice: a record is created or changed, a file is attached, a cover is set. It is intended before
its request is sent and settled by the response. An entry that stays intended has a lost response.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from pipelines.errors import RefusedError, UnnamedRecordError
from pipelines.migration.model.journal_entries import (
    COLUMNS,
    FailedWriteError,
    JournalEntry,
    WriteKind,
    WriteState,
    WrittenRecord,
)
from pipelines.records.values import RecordId, as_id, ids_of, record_id
from pipelines.service.clock import Clock
from pipelines.state.store import State

RECORD_WRITES = (WriteKind.CREATE, WriteKind.PATCH, WriteKind.LINK, WriteKind.MERGE)
"""Kinds of writes of a record itself; the others write its files."""

_OF_RECORD = f"kind IN ({', '.join('?' * len(RECORD_WRITES))})"
"""SQL whose parameters are `RECORD_WRITES`."""

_MOST_VALUES = 10_000
"""Ids in one statement; Postgres takes 65,535 values."""


IF_NOT_FOUND = (
    "The target does not show it yet: look there. The next plan takes it where it is, and creates it where it is not."
)
"""What to do about a write that was answered with success, without the record that it made, where no lookup finds that."""


class Journal:
    """The writes from one library to another. Both are named by their addresses, because tenants may be renamed."""

    def __init__(self, state: State, source: str, target: str, clock: Clock) -> None:
        self._pair = (source, target)
        self._clock = clock
        self._store = state.open(clock, durable=True)

    def intend(
        self,
        plan: str,
        resource: str,
        source_id: RecordId,
        kind: WriteKind,
        part: str = "",
        *,
        target_id: RecordId | None = None,
        wanted: dict[str, str | None] | None = None,
    ) -> int:
        """Store durably that a write is about to be sent; returns the number of its entry. An earlier entry of this write is reused."""
        key = (*self._pair, plan, resource, str(source_id), kind, part)
        values = (_text(target_id), _json(wanted), self.now(), WriteState.INTENDED)
        with self._store.transaction() as db:
            (number,) = db.execute(
                "INSERT INTO migration_writes (source, target, plan, resource, source_id, kind, part, target_id, wanted, "
                "begun_at, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (source, target, plan, resource, source_id, kind, part) "
                "DO UPDATE SET state = excluded.state, target_id = excluded.target_id, asset_id = NULL, "
                "wanted = excluded.wanted, "
                "held = NULL, status = NULL, message = NULL, begun_at = excluded.begun_at, ended_at = NULL RETURNING number",
                (*key, *values),
            ).fetchone()
        return int(number)

    def sent(self, *numbers: int) -> None:
        """Store durably that a request of these entries leaves now."""
        self._update(numbers, sent_at=self.now())

    def answered(self, *numbers: int) -> None:
        """The response to the last request of these entries is known: it has no effect that is still to come."""
        self._update(numbers, sent_at=None)

    @contextmanager
    def sending(self, *numbers: int) -> Iterator[Callable[[], None]]:
        """Send a request of these entries; yields what is called when it leaves. Its errors are raised: a refusal is an answer.

        After a success that does not name what was made, they stay intended, and are never sent again.
        """
        try:
            yield partial(self.sent, *numbers)
        except UnnamedRecordError as unnamed:
            self._update(numbers, status=unnamed.status, message=f"{unnamed} {IF_NOT_FOUND}")
            raise
        except RefusedError:
            self.answered(*numbers)
            raise

    def absent(self, number: int) -> None:
        """The write had no effect, and none is to come: it may be sent again."""
        self._update([number], state=WriteState.INTENDED, sent_at=None, message=None)

    def done(
        self,
        number: int,
        *,
        target_id: RecordId,
        asset_id: int | None = None,
        wanted: dict[str, str | None] | None = None,
        held: dict[str, str | None] | None = None,
        message: str | None = None,
    ) -> None:
        """The write happened. `message`: what the target did not take or keep of it. `wanted`: what was written, if not what was meant."""
        values: dict[str, Any] = {} if wanted is None else {"wanted": _json(wanted)}
        values |= {"target_id": str(target_id), "asset_id": asset_id, "held": _json(held), "message": message}
        self._update([number], **values, state=WriteState.DONE, status=None, sent_at=None, ended_at=self.now())

    def refused(self, number: int, message: str, status: int | None = None) -> FailedWriteError:
        """The service refused the write; nothing was written. Returns the error for its row."""
        values: dict[str, Any] = {"message": message, "status": status}
        self._update([number], **values, state=WriteState.REFUSED, sent_at=None, ended_at=self.now())
        return FailedWriteError(message)

    def parked(self, number: int, message: str) -> None:
        """It is unknown whether the write happened."""
        self._update([number], state=WriteState.PARKED, message=message, ended_at=self.now())

    def undone(self, *numbers: int) -> None:
        """The writes were taken back; all entries change at once."""
        self._update(numbers, state=WriteState.UNDONE, sent_at=None, ended_at=self.now())

    def release(self, entry: JournalEntry, names: Collection[str]) -> None:
        """From now on, an entry does not say what the target has in these fields: what happens to them is no edit of a person."""
        self._update([entry.number], held=_json({name: held for name, held in entry.held.items() if name not in names}))

    def withdraw(self, number: int) -> None:
        """Remove an intended entry whose request had no effect."""
        with self._store.transaction() as db:
            db.execute("DELETE FROM migration_writes WHERE number = ? AND state = ?", (number, WriteState.INTENDED))

    def _update(self, numbers: Iterable[int], **columns: Any) -> None:
        changes = ", ".join(f"{name} = ?" for name in columns)
        with self._store.transaction() as db:
            db.executemany(
                f"UPDATE migration_writes SET {changes} WHERE number = ?",  # noqa: S608  our own names
                [(*columns.values(), number) for number in numbers],
            )

    def of_record(self, resource: str, source_id: RecordId) -> list[JournalEntry]:
        """The entries of one record, of all plans, oldest first."""
        return self._entries(
            "source = ? AND target = ? AND resource = ? AND source_id = ?", (*self._pair, resource, str(source_id))
        )

    def writes(self, plan: str, resource: str, source_id: RecordId) -> dict[tuple[str, str], JournalEntry]:
        """(kind, part) → a plan's write of a record."""
        entries = self.of_record(resource, source_id)
        return {(entry.kind, entry.part): entry for entry in entries if entry.plan == plan}

    def done_writes(
        self, plan: str, resource: str, ids: Sequence[RecordId]
    ) -> dict[RecordId, set[tuple[WriteKind, str]]]:
        """Record of the source → kind and part of the writes of a plan that are done, of those with these ids."""
        done: dict[RecordId, set[tuple[WriteKind, str]]] = {}
        rows = self._store.read(
            "SELECT source_id, kind, part FROM migration_writes WHERE source = ? AND target = ? AND plan = ? AND resource = ? "  # noqa: S608
            f"AND state = ? AND source_id IN ({', '.join('?' * len(ids))})",
            (*self._pair, plan, resource, WriteState.DONE, *map(str, ids)),
        )
        for source_id, kind, part in rows:
            done.setdefault(as_id(source_id), set()).add((WriteKind(kind), part))
        return done

    def written_files(self, resource: str) -> Iterator[tuple[Any, ...]]:
        """Yield the entries of the files of a resource, of all plans: record, number, kind, part, state, asset, message."""
        return self._store.stream(
            "SELECT source_id, number, kind, part, state, asset_id, message FROM migration_writes "
            "WHERE source = ? AND target = ? AND resource = ? AND kind IN (?, ?)",
            (*self._pair, resource, WriteKind.ASSET, WriteKind.COVER),
        )

    def of_plan(self, plan: str, *states: WriteState, with_message: bool = False) -> Iterator[JournalEntry]:
        """Yield the entries of one plan in these states, or all, oldest first. `with_message`: only those that have one."""
        chosen = states or (*WriteState,)
        where = f"source = ? AND target = ? AND plan = ? AND state IN ({', '.join('?' * len(chosen))})"
        where += " AND message IS NOT NULL" if with_message else ""
        rows = self._store.stream(
            f"SELECT {COLUMNS} FROM migration_writes WHERE {where} ORDER BY number",  # noqa: S608  our own words
            (*self._pair, plan, *chosen),
        )
        return map(_entry, rows)

    def target_id_of(self, resource: str, source_id: RecordId) -> RecordId | None:
        """The record of the target that the last write for this record of the source created or changed."""
        rows = self._store.read(
            "SELECT target_id FROM migration_writes WHERE source = ? AND target = ? AND resource = ? AND source_id = ? AND state = ? "  # noqa: S608
            f"AND {_OF_RECORD} ORDER BY number DESC LIMIT 1",
            (*self._pair, resource, str(source_id), WriteState.DONE, *RECORD_WRITES),
        )
        return record_id(rows[0][0]) if rows else None

    def known_ids(self, resource: str, ids: Iterable[RecordId], besides: RecordId = "") -> set[RecordId]:
        """Returns those ids of the target that entries created or changed; `besides`: but for those of this record of the source."""
        where = f"{_OF_RECORD} AND state IN (?, ?) AND NOT (source = ? AND source_id = ?)"
        states = (WriteState.DONE, WriteState.INTENDED)
        return self._among(resource, ids, where, (*RECORD_WRITES, *states, self._pair[0], str(besides)))

    def created_before(self, resource: str, ids: Iterable[RecordId], moment: str) -> set[RecordId]:
        """Returns those ids of the target that entries had created before a moment, which is an ISO date and time as in an entry."""
        values = (WriteKind.CREATE, WriteState.DONE, moment)
        return self._among(resource, ids, "kind = ? AND state = ? AND ended_at < ?", values)

    def _among(self, resource: str, ids: Iterable[RecordId], where: str, values: Sequence[str]) -> set[RecordId]:
        texts, matches = [*map(str, ids)], set[RecordId]()
        for begin in range(0, len(texts), _MOST_VALUES):
            batch = texts[begin : begin + _MOST_VALUES]
            marks = ", ".join("?" * len(batch))
            rows = self._store.read(
                f"SELECT target_id FROM migration_writes WHERE target = ? AND resource = ? AND target_id IN ({marks}) AND {where}",  # noqa: S608
                (self._pair[1], resource, *batch, *values),
            )
            matches.update(ids_of(text for (text,) in rows))
        return matches

    def unanswered(self) -> list[JournalEntry]:
        """The entries of the target, of every source, whose last request has no known response: it may still take effect."""
        return self._entries("target = ? AND sent_at IS NOT NULL", (self._pair[1],))

    def has_done(self, resource: str, kinds: Sequence[WriteKind]) -> bool:
        """Whether the target took any write of these kinds, of any source."""
        marks = ", ".join("?" * len(kinds))
        rows = self._store.read(
            f"SELECT 1 FROM migration_writes WHERE target = ? AND state = ? AND resource = ? AND kind IN ({marks}) LIMIT 1",  # noqa: S608
            (self._pair[1], WriteState.DONE, resource, *kinds),
        )
        return bool(rows)

    def counts(self, plan: str) -> dict[tuple[WriteKind, WriteState], int]:
        """(kind, state) → entries of a plan."""
        rows = self._store.read(
            "SELECT kind, state, count(*) FROM migration_writes WHERE source = ? AND target = ? AND plan = ? GROUP BY kind, state",
            (*self._pair, plan),
        )
        return {(WriteKind(kind), WriteState(state)): count for kind, state, count in rows}

    def written(self, resource: str) -> Iterator[WrittenRecord]:
        """Yield what all plans wrote for each record of the source, in the order of their ids."""
        rows = self._store.stream(
            "SELECT source_id, target_id, kind, wanted, held FROM migration_writes WHERE source = ? AND target = ? AND resource = ? "  # noqa: S608
            f"AND state = ? AND {_OF_RECORD} ORDER BY source_id, number",
            (*self._pair, resource, WriteState.DONE, *RECORD_WRITES),
        )
        current: WrittenRecord | None = None
        for source_id, target_id, kind, wanted, held in rows:
            if current is not None and str(current.source_id) != source_id:
                yield current
                current = None
            if current is None or kind == WriteKind.CREATE or str(current.target_id) != target_id:
                current = WrittenRecord(source_id=as_id(source_id), target_id=as_id(target_id), wanted={}, held={})
            current.wanted |= msgspec.json.decode(wanted) if wanted else {}
            current.held |= msgspec.json.decode(held) if held else {}
        if current is not None:
            yield current

    def columns_of_plan(self, plan: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield these columns of each entry of a plan, oldest first; JSON is text."""
        return self._store.stream(
            f"SELECT {', '.join(columns)} FROM migration_writes WHERE source = ? AND target = ? AND plan = ? ORDER BY number",  # noqa: S608
            (*self._pair, plan),
        )

    def created_records(self, resource: str) -> Iterator[tuple[str | None, str, int | None, str]]:
        """Yield the records of the target that plans of any source created, and the assets that they attached.

        Record of this source, or none of another one; record of the target; asset; plan.
        """
        return self._store.stream(
            "SELECT CASE WHEN source = ? THEN source_id END, target_id, asset_id, plan FROM migration_writes "
            "WHERE target = ? AND resource = ? AND state = ? AND kind IN (?, ?)",
            (*self._pair, resource, WriteState.DONE, WriteKind.CREATE, WriteKind.ASSET),
        )

    def last_change(self, plan: str) -> str:
        """The moment at which an entry of a plan was last begun or settled; empty where the plan has no entry."""
        [(moment,)] = self._store.read(
            "SELECT max(CASE WHEN ended_at > begun_at THEN ended_at ELSE begun_at END) "
            "FROM migration_writes WHERE source = ? AND target = ? AND plan = ?",
            (*self._pair, plan),
        )
        return moment or ""

    def close(self) -> None:
        """Close the connection."""
        self._store.close()

    def _entries(self, where: str, values: tuple[Any, ...]) -> list[JournalEntry]:
        query = f"SELECT {COLUMNS} FROM migration_writes WHERE {where} ORDER BY number"  # noqa: S608  our own words
        return [_entry(row) for row in self._store.read(query, values)]

    def now(self) -> str:
        """The moment, as in its entries."""
        moment: datetime = self._clock.now()
        return moment.isoformat(timespec="milliseconds")


def _entry(row: tuple[Any, ...]) -> JournalEntry:
    values = dict(zip(COLUMNS.split(", "), row, strict=True))
    for name in ("wanted", "held"):
        values[name] = msgspec.json.decode(values[name]) if values[name] else {}
    for name in ("source_id", "target_id"):
        values[name] = record_id(values[name])
    values["kind"], values["state"] = WriteKind(values["kind"]), WriteState(values["state"])
    return JournalEntry(**values)


def _text(number: RecordId | None) -> str | None:
    return None if number is None else str(number)


def _json(value: dict[str, Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
