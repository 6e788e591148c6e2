"""Matches the records of one small resource with those of the target: the room in which both sides lie, and what has become of what.

A SQLite file beside the plan that grows, so that nothing of a library is held in memory (I11); it goes when the plan is made. What names a
record is kept as a digest: of users it is their address.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import pyarrow as pa

from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import CONFLICT, CREATE, PATCH, UNCHANGED
from pipelines.migration.model.resource_types import ResourceType
from pipelines.records.tables import PERSONAL
from pipelines.records.values import decode_record, whole_number
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey
from pipelines.store.parquet import TableWriter, open_table, row_batches

if TYPE_CHECKING:
    from pipelines.migration.plan.conflicts import Decision

CANDIDATES = 20
"""Records of the target that an unclear match names at most."""

_SCHEMA = """
    CREATE TABLE became (resource TEXT, source_id INTEGER, target_id INTEGER, PRIMARY KEY (resource, source_id)) WITHOUT ROWID;
    CREATE TABLE ours (place INTEGER PRIMARY KEY, id INTEGER UNIQUE, exact BLOB, folded BLOB, record TEXT);
    CREATE TABLE theirs (id INTEGER PRIMARY KEY, exact BLOB, folded BLOB, record TEXT);
    CREATE TABLE written (source_id INTEGER PRIMARY KEY, target_id INTEGER, wanted TEXT, held TEXT);
    CREATE TABLE settled (source_id INTEGER PRIMARY KEY);
    CREATE TABLE matched (source_id INTEGER PRIMARY KEY, target_id INTEGER, matched_by TEXT);
    CREATE TABLE unclear (source_id INTEGER PRIMARY KEY, reason TEXT, candidates TEXT);
"""

_JOURNAL = """
    INSERT OR IGNORE INTO matched SELECT o.id, w.target_id, 'journal'
        FROM ours AS o JOIN written AS w ON w.source_id = o.id JOIN theirs AS t ON t.id = w.target_id
        WHERE o.id NOT IN (SELECT source_id FROM settled);
    INSERT INTO unclear SELECT o.id, 'deleted_in_target', '[]'
        FROM ours AS o JOIN written AS w ON w.source_id = o.id LEFT JOIN theirs AS t ON t.id = w.target_id
        WHERE t.id IS NULL AND o.id NOT IN (SELECT source_id FROM settled UNION SELECT source_id FROM matched);
"""
_ID = """
    INSERT OR IGNORE INTO matched SELECT o.id, o.id, 'id' FROM ours AS o JOIN theirs AS t ON t.id = o.id
        WHERE o.id NOT IN (SELECT source_id FROM settled UNION SELECT source_id FROM unclear);
"""
_KEY = """
    CREATE TEMP TABLE free_ours AS SELECT id, {key} AS key FROM ours WHERE {key} IS NOT NULL AND id NOT IN
        (SELECT source_id FROM settled UNION SELECT source_id FROM matched UNION SELECT source_id FROM unclear);
    CREATE TEMP TABLE free_theirs AS
        SELECT id, {key} AS key FROM theirs WHERE {key} IS NOT NULL AND id NOT IN (SELECT target_id FROM matched);
    CREATE INDEX temp.by_our_key ON free_ours (key);
    CREATE INDEX temp.by_their_key ON free_theirs (key);
    CREATE TEMP TABLE pairs AS SELECT key, o.many AS ours, t.many AS theirs
        FROM (SELECT key, count(*) AS many FROM free_ours GROUP BY key) AS o
        JOIN (SELECT key, count(*) AS many FROM free_theirs GROUP BY key) AS t USING (key);
    INSERT INTO matched SELECT o.id, t.id, 'name'
        FROM pairs AS p JOIN free_ours AS o ON o.key = p.key JOIN free_theirs AS t ON t.key = p.key WHERE ours = 1 AND theirs = 1;
    INSERT INTO unclear SELECT o.id, CASE WHEN theirs > 1 THEN 'several_targets' ELSE 'several_sources' END,
        (SELECT json_group_array(id) FROM (SELECT id FROM free_theirs AS t WHERE t.key = o.key ORDER BY id LIMIT {candidates}))
        FROM pairs AS p JOIN free_ours AS o ON o.key = p.key WHERE ours > 1 OR theirs > 1;
    DROP TABLE free_ours; DROP TABLE free_theirs; DROP TABLE pairs;
"""

_OUTCOMES = """
    SELECT o.id, o.record, m.target_id, m.matched_by, t.record, w.wanted, w.held, u.reason, u.candidates
    FROM ours AS o
    LEFT JOIN matched AS m ON m.source_id = o.id
    LEFT JOIN theirs AS t ON t.id = m.target_id
    LEFT JOIN written AS w ON w.source_id = o.id AND w.target_id = m.target_id
    LEFT JOIN unclear AS u ON u.source_id = o.id
    ORDER BY place
"""


@dataclass(frozen=True)
class TargetListing:
    """The raw table of a resource on this machine, and the key where it is encrypted."""

    path: Path
    key: PersonalKey | None = None

    def records(self) -> Iterator[dict[str, Any]]:
        """Each record; a step in memory."""
        with storage_errors(self.path), open_table(self.path, self.key) as file:
            for batch in row_batches(file, ["payload"], STEP):
                for payload in batch.column("payload").cast(pa.binary()).to_pylist():
                    yield decode_record(payload or b"")

    @property
    def rows(self) -> int:
        """Records in it."""
        with storage_errors(self.path), open_table(self.path, self.key) as file:
            return file.metadata.num_rows


class JournalledRecord(msgspec.Struct, kw_only=True):
    """A record of the source as the target would take it: what it refers to has the target's ids, or is still to be created."""

    values: dict[str, Any]
    references: dict[str, Any]
    unsent: dict[str, Any]
    reason: str | None
    """Why it cannot be created."""


class MatchResult(NamedTuple):
    """What was found of one record of the source."""

    source_id: int
    ours: JournalledRecord
    target_id: int | None
    matched_by: str | None
    theirs: dict[str, Any] | None
    wanted: dict[str, str | None] | None
    held: dict[str, str | None] | None
    reason: str | None
    candidates: list[int]


class MatchStore:
    """Where both sides of a resource lie, one resource after the other, and what records of all of them became."""

    def __init__(self, path: Path, *, same_library: bool, key: PersonalKey | None = None) -> None:
        self._path = path
        self._key = key
        self._same_library = same_library
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE; {_SCHEMA}"
        )
        self._read: set[str] = set()
        """Resources whose records are known."""

    def note(self, batch: pa.RecordBatch | pa.Table, *, to_be_created: bool = True) -> None:
        """Remember what becomes of records, from rows of the plan; `to_be_created`: whether what is not there will be."""
        columns = (batch.column(name).to_pylist() for name in ("resource", "source_id", "target_id", "action"))
        rows = []
        for resource, source_id, target_id, action in zip(*columns, strict=True):
            self._read.add(resource)
            if action == CREATE and to_be_created:
                rows.append((resource, source_id, None))
            elif target_id is not None and action in (PATCH, UNCHANGED, CONFLICT):
                rows.append((resource, source_id, target_id))
        self._insert("became", rows)

    def became(self, resource: str, source_id: int) -> tuple[bool, int | None]:
        """Whether a record is, or will be, in the target; and its id there, if it has one yet."""
        row = self._db.execute(
            "SELECT target_id FROM became WHERE resource = ? AND source_id = ?", (resource, source_id)
        ).fetchone()
        if row is not None:
            return True, row[0]
        return (True, source_id) if self._same_library and resource not in self._read else (False, None)

    def lay_out(
        self,
        other: ResourceType,
        ours: Iterable[tuple[int, JournalledRecord]],
        theirs: Iterable[tuple[int, dict[str, Any]]],
    ) -> None:
        """Take both sides of a resource."""
        for table in ("ours", "theirs", "written", "settled", "matched", "unclear"):
            self._db.execute(f"DELETE FROM {table}")  # noqa: S608  names of ours
        seal = sealing(other, self._key)
        rows = ((number, *_keys(other, one.values), seal(_json(one))) for number, one in ours)
        self._insert("ours (id, exact, folded, record)", rows)
        self._insert("theirs", ((number, *_keys(other, values), seal(_json(values))) for number, values in theirs))

    def match(self, other: ResourceType, journal: Journal, decisions: Mapping[int, Decision]) -> None:
        """Find out which are one: by a decision, the journal, the id within one library, and what names them."""
        written = journal.written(other.resource)
        self._insert("written", ((one.source_id, one.target_id, _json(one.wanted), _json(one.held)) for one in written))
        for one in decisions.values():
            if one.target_id is None:
                self._insert("settled", [(one.source_id,)])
            elif self._db.execute("SELECT 1 FROM theirs WHERE id = ?", (one.target_id,)).fetchone():
                self._insert("matched", [(one.source_id, one.target_id, "decision")])
        self._db.executescript(_JOURNAL + (_ID if self._same_library else ""))
        for key in ("exact", "folded"):
            self._db.executescript(_KEY.format(key=key, candidates=CANDIDATES))

    def outcomes(self, other: ResourceType) -> Iterator[MatchResult]:
        """What was found, in the order of the source."""
        unseal = unsealing(other, self._key)
        for number, record, target_id, matched_by, theirs, wanted, held, reason, candidates in self._db.execute(
            _OUTCOMES
        ):
            ours = msgspec.json.decode(unseal(record), type=JournalledRecord)
            known = [msgspec.json.decode(one) if one else None for one in (theirs and unseal(theirs), wanted, held)]
            ids = msgspec.json.decode(candidates, type=list[int]) if candidates else []
            yield MatchResult(number, ours, target_id, matched_by, known[0], known[1], known[2], reason, ids)

    def their_ids(self) -> Iterator[list[int]]:
        """The ids of the target, in steps."""
        rows = self._db.execute("SELECT id FROM theirs ORDER BY id")
        while found := rows.fetchmany(STEP):
            yield [number for (number,) in found]

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """In one transaction; what has the id of an earlier one is left out."""
        with storage_errors(self._path):
            for step in _steps(rows):
                marks = ", ".join("?" * len(step[0]))
                self._db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", step)  # noqa: S608  names of ours

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        self._path.unlink(missing_ok=True)


class NotingWriter(TableWriter):
    """Writes the rows of a plan, and notes in a room what becomes of the records."""

    def __init__(self, writer: TableWriter, room: MatchStore) -> None:
        self._inner = writer
        self._room = room
        self.rows = 0

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append some rows."""
        self._inner.write(batch)
        self._room.note(batch)
        self.rows += batch.num_rows


def numbered(records: Iterable[dict[str, Any]], unfit: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records with their ids; those without one are counted in `unfit`."""
    for record in records:
        number = whole_number(record.get("id"))
        if number is None:
            unfit[0] += 1
        else:
            yield number, record


def sealing(other: ResourceType, key: PersonalKey | None) -> Callable[[str], str | bytes]:
    """How a record of a resource is kept on the way: of people only for who has the key, where there is one."""
    if key is None or other.resource not in PERSONAL:
        return str
    seal = key.seal
    return lambda text: seal(text.encode())


def unsealing(other: ResourceType, key: PersonalKey | None) -> Callable[[Any], str | bytes]:
    """The way back."""
    return key.unseal if key is not None and other.resource in PERSONAL else str


def _steps(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    step: list[tuple[Any, ...]] = []
    for row in rows:
        step.append(row)
        if len(step) == STEP:
            yield step
            step = []
    if step:
        yield step


def _keys(other: ResourceType, values: Mapping[str, Any]) -> Iterator[bytes | None]:
    """Digests of what names a record: as it is written, and whatever its case."""
    for folded in (False, True):
        yield key_digest(other.key(values, folded=folded))


def key_digest(key: str | None) -> bytes | None:
    """What names a record, as it is kept on the way."""
    return hashlib.sha256(key.encode()).digest()[:16] if key is not None else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
