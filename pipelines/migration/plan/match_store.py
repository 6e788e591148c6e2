"""Matches the records of the other resources with those of the target, one resource after the other.

Both sides of a resource are in a SQLite file beside the plan, so that memory does not grow with the library (I11). The file is removed when
the plan is made. The key of a record is stored as a digest, because the key of a user is the e-mail address.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import pyarrow as pa

from pipelines.file_access import make_file
from pipelines.migration.model.actions import Action, Decision
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import PlannedReference
from pipelines.migration.model.resource_types import MERGEABLE, ResourceType
from pipelines.migration.plan.rows import in_steps
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import whole_number
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey
from pipelines.store.parquet import TableWriter

if TYPE_CHECKING:
    from pipelines.migration.plan.conflicts import RecordDecision

CANDIDATES = 20
"""Records of the target that an ambiguous match names at most."""

_SCHEMA = """
    CREATE TABLE planned (resource TEXT, source_id INTEGER, target_id INTEGER, PRIMARY KEY (resource, source_id)) WITHOUT ROWID;
    CREATE TABLE source (place INTEGER PRIMARY KEY, id INTEGER UNIQUE, exact BLOB, folded BLOB, record TEXT);
    CREATE TABLE target (id INTEGER PRIMARY KEY, exact BLOB, folded BLOB, record TEXT);
    CREATE INDEX target_folded ON target (folded);
    CREATE TABLE written (source_id INTEGER PRIMARY KEY, target_id INTEGER, wanted TEXT, held TEXT);
    CREATE TABLE decided (source_id INTEGER PRIMARY KEY, target_id INTEGER, merge INTEGER);
    CREATE TABLE matched (source_id INTEGER PRIMARY KEY, target_id INTEGER, matched_by TEXT);
    CREATE TABLE ambiguous (source_id INTEGER PRIMARY KEY, reason TEXT, candidates TEXT);
"""
"""`planned` has the records of all resources; the other tables have one resource. `decided`: records of which a person said which one they
are (`target_id`), that they are none, or that several are merged."""

_BY_DECISION = """
    DELETE FROM decided WHERE source_id NOT IN (SELECT id FROM source);
    INSERT INTO ambiguous SELECT source_id, 'decided_is_missing', '[]'
        FROM decided WHERE target_id IS NOT NULL AND target_id NOT IN (SELECT id FROM target);
    DELETE FROM decided WHERE merge;  -- the records are found by their key
    INSERT INTO matched SELECT source_id, target_id, 'decision'
        FROM decided WHERE target_id IS NOT NULL AND source_id NOT IN (SELECT source_id FROM ambiguous);
"""
_BY_EVIDENCE = """
    CREATE TEMP TABLE pairs AS SELECT source_id, target_id, count(*) OVER (PARTITION BY target_id) AS sources
        FROM ({evidence}) JOIN source AS s ON s.id = source_id WHERE source_id NOT IN
            (SELECT source_id FROM decided UNION SELECT source_id FROM matched UNION SELECT source_id FROM ambiguous);
    INSERT INTO ambiguous SELECT source_id, 'deleted_in_target', '[]' FROM pairs WHERE target_id NOT IN (SELECT id FROM target);
    INSERT OR IGNORE INTO ambiguous SELECT source_id, 'several_sources', json_array(target_id)
        FROM pairs WHERE sources > 1 OR target_id IN (SELECT target_id FROM matched);
    INSERT INTO matched SELECT source_id, target_id, '{name}'
        FROM pairs WHERE source_id NOT IN (SELECT source_id FROM ambiguous);
    DROP TABLE pairs;
"""
"""No record of the target is matched twice: where a person gave it to another record, this one is not new but a question."""

_BY_JOURNAL = _BY_EVIDENCE.format(name="journal", evidence="SELECT source_id, target_id FROM written")
_BY_ID = _BY_EVIDENCE.format(
    name="id", evidence="SELECT id AS source_id, id AS target_id FROM source WHERE id IN (SELECT id FROM target)"
)
_BY_KEY = """
    CREATE TEMP TABLE free_source AS SELECT id, {key} AS key FROM source WHERE {key} IS NOT NULL AND id NOT IN
        (SELECT source_id FROM decided UNION SELECT source_id FROM matched);
    CREATE TEMP TABLE free_target AS
        SELECT id, {key} AS key FROM target WHERE {key} IS NOT NULL AND id NOT IN (SELECT target_id FROM matched);
    CREATE INDEX temp.by_source_key ON free_source (key);
    CREATE INDEX temp.by_target_key ON free_target (key);
    CREATE TEMP TABLE pairs AS SELECT key, s.many AS sources, t.many AS targets
        FROM (SELECT key, count(*) AS many FROM free_source GROUP BY key) AS s
        JOIN (SELECT key, count(*) AS many FROM free_target GROUP BY key) AS t USING (key);
    INSERT INTO matched SELECT s.id, t.id, 'name'
        FROM pairs AS p JOIN free_source AS s ON s.key = p.key JOIN free_target AS t ON t.key = p.key
        WHERE sources = 1 AND targets = 1 AND s.id NOT IN (SELECT source_id FROM ambiguous);
    INSERT OR IGNORE INTO ambiguous
        SELECT s.id, CASE WHEN targets > 1 THEN 'several_targets' ELSE 'several_sources' END,
        (SELECT json_group_array(id) FROM (SELECT id FROM free_target AS t WHERE t.key = s.key ORDER BY id LIMIT {candidates}))
        FROM pairs AS p JOIN free_source AS s ON s.key = p.key WHERE sources > 1 OR targets > 1;
    DROP TABLE free_source; DROP TABLE free_target; DROP TABLE pairs;
"""
"""A record about which a person is asked counts among those that fit."""

_TWINS = """(SELECT json_group_array(id) FROM (
        SELECT o.id FROM target AS o WHERE o.folded = t.folded AND o.id != t.id AND o.id NOT IN (SELECT target_id FROM matched)
        ORDER BY o.id LIMIT {candidates}))"""
"""Records of the target with the key of a match that no record of the source is matched with."""

_GROUPS = """
    SELECT min(id), json_group_array(id) FROM (SELECT id, folded FROM target WHERE folded IS NOT NULL ORDER BY id)
    GROUP BY folded HAVING count(*) > 1 ORDER BY 1
"""

_RESULTS = """
    SELECT s.id, s.record, m.target_id, m.matched_by, t.record, w.wanted, w.held, a.reason, a.candidates, {twins}
    FROM source AS s
    LEFT JOIN matched AS m ON m.source_id = s.id
    LEFT JOIN target AS t ON t.id = m.target_id
    LEFT JOIN written AS w ON w.source_id = s.id AND w.target_id = m.target_id
    LEFT JOIN ambiguous AS a ON a.source_id = s.id
    ORDER BY place
"""


class PreparedRecord(msgspec.Struct, kw_only=True):
    """A record of the source as it will be sent: its references are ids of the target, or of records that are still to be created."""

    values: dict[str, Any]
    references: dict[str, PlannedReference]
    """Field → references to records that are still to be created."""
    unsent: dict[str, Any]
    """Path → value that is not sent."""
    reason: str | None
    """Why it cannot be created (quarantine.py)."""
    empty: dict[str, Any] = {}
    """Field → empty text or list, which equals null in every comparison."""


class MatchResult(NamedTuple):
    """A record of the source with its match in the target, if it has one."""

    source_id: int
    source: PreparedRecord
    target_id: int | None
    matched_by: str | None
    target: dict[str, Any] | None
    wanted: dict[str, str | None] | None
    held: dict[str, str | None] | None
    reason: str | None
    """Why the match is ambiguous."""
    candidates: list[int]
    twins: list[int]
    """Other records of the target with the key of the match; for resources whose records can be merged."""


class MatchStore:
    """Both sides of one resource, and the target ids of all resources that were planned before."""

    def __init__(self, path: Path, *, same_library: bool, key: PersonalKey | None = None) -> None:
        self._path = path
        self._key = key
        self._same_library = same_library
        make_file(path)
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE; {_SCHEMA}"
        )
        self._known_resources: set[str] = set()
        self.merged: dict[tuple[str, int], int] = {}
        """Resource and id of each record of the target that the plan merges into another → that one."""

    def note(self, batch: pa.RecordBatch | pa.Table, *, to_be_created: bool = True) -> None:
        """Store the target ids of rows of the plan. `to_be_created`: whether the plan creates the records that the target lacks."""
        columns = (batch.column(name).to_pylist() for name in ("resource", "source_id", "target_id", "action"))
        rows = []
        for resource, source_id, target_id, action in zip(*columns, strict=True):
            self._known_resources.add(resource)
            if action == Action.CREATE and to_be_created:
                rows.append((resource, source_id, None))
            elif target_id is not None and action in (
                Action.PATCH,
                Action.MERGE,
                Action.UNCHANGED,
                Action.CONFLICT,
            ):
                rows.append((resource, source_id, target_id))
        self._insert("planned", rows, otherwise="REPLACE")

    def knows(self, resource: str) -> bool:
        """Whether the records of a resource are matched."""
        return resource in self._known_resources

    def keep_order(self, steps: Iterable[Iterable[int]]) -> None:
        """Remember the order in which the records of a resource are created, which is not loaded."""
        self._db.execute("DELETE FROM source")
        self._insert("source (id)", ((number,) for step in steps for number in step))

    def precedes(self, one: int, other: int) -> bool:
        """Whether a record of the source is created before another one of the resource."""
        ((found,),) = self._db.execute(
            "SELECT coalesce((SELECT place FROM source WHERE id = ?) < (SELECT place FROM source WHERE id = ?), false)",
            (one, other),
        ).fetchall()
        return bool(found)

    def target_of(self, resource: str, source_id: int) -> tuple[bool, int | None]:
        """Whether a record is, or will be, in the target; and its id there, if it has one yet."""
        row = self._db.execute(
            "SELECT target_id FROM planned WHERE resource = ? AND source_id = ?", (resource, source_id)
        ).fetchone()
        if row is not None:
            return True, row[0]
        return (True, source_id) if self._same_library and resource not in self._known_resources else (False, None)

    def load(
        self,
        resource_type: ResourceType,
        source: Iterable[tuple[int, PreparedRecord]],
        target: Iterable[tuple[int, dict[str, Any]]],
    ) -> int:
        """Replace both sides by those of another resource. Returns the number of records of the source."""
        for table in ("source", "target", "written", "decided", "matched", "ambiguous"):
            self._db.execute(f"DELETE FROM {table}")  # noqa: S608  our own names
        seal = sealing(resource_type, self._key)
        rows = ((number, *_keys(resource_type, record.values), seal(_json(record))) for number, record in source)
        records = self._insert("source (id, exact, folded, record)", rows)
        self._insert(
            "target", ((number, *_keys(resource_type, values), seal(_json(values))) for number, values in target)
        )
        return records

    def match(self, resource_type: ResourceType, journal: Journal, decisions: Mapping[int, RecordDecision]) -> None:
        """Match both sides: by decisions, by the journal, by the id within one library, and by the key of a record."""
        written = journal.written(resource_type.resource)
        self._insert(
            "written",
            ((record.source_id, record.target_id, _json(record.wanted), _json(record.held)) for record in written),
        )
        self._insert(
            "decided",
            ((one.source_id, one.target_id, one.decision == Decision.MERGE) for one in decisions.values()),
        )
        self._db.executescript(_BY_DECISION + _BY_JOURNAL + (_BY_ID if self._same_library else ""))
        for key in ("exact", "folded"):
            self._db.executescript(_BY_KEY.format(key=key, candidates=CANDIDATES))

    def results(self, resource_type: ResourceType) -> Iterator[MatchResult]:
        """Yield each record of the source with its match, in the order of the source."""
        unseal = unsealing(resource_type, self._key)
        twins_of = _TWINS.format(candidates=CANDIDATES) if resource_type.resource in MERGEABLE else "NULL"
        query = _RESULTS.format(twins=twins_of)
        for (
            source_id,
            source,
            target_id,
            matched_by,
            target,
            wanted,
            held,
            reason,
            candidates,
            twins,
        ) in self._db.execute(query):
            yield MatchResult(
                source_id=source_id,
                source=_PREPARED_RECORD_DECODER.decode(unseal(source)),
                target_id=target_id,
                matched_by=matched_by,
                target=msgspec.json.decode(unseal(target)) if target else None,
                wanted=msgspec.json.decode(wanted) if wanted else None,
                held=msgspec.json.decode(held) if held else None,
                reason=reason,
                candidates=_NUMBERS_DECODER.decode(candidates) if candidates else [],
                twins=_NUMBERS_DECODER.decode(twins) if twins else [],
            )

    def same_keys(self, resource_type: ResourceType) -> Iterator[tuple[str, list[int]]]:
        """Yield title and ids of each key that several records of the target have."""
        unseal = unsealing(resource_type, self._key)
        for first, ids in self._db.execute(_GROUPS).fetchall():
            ((record,),) = self._db.execute("SELECT record FROM target WHERE id = ?", (first,)).fetchall()
            yield (
                resource_type.title(msgspec.json.decode(unseal(record))) or "",
                _NUMBERS_DECODER.decode(ids),
            )

    def target_ids(self) -> Iterator[list[int]]:
        """Yield the ids of the target, `STEP` at a time."""
        rows = self._db.execute("SELECT id FROM target ORDER BY id")
        while found := rows.fetchmany(STEP):
            yield [number for (number,) in found]

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]], otherwise: str = "IGNORE") -> int:
        """Insert rows, of those with the same id only the first (or the last: REPLACE). Returns how many there were."""
        count = 0
        with storage_errors(self._path):
            for step in in_steps(rows):
                count += len(step)
                marks = ", ".join("?" * len(step[0]))
                self._db.executemany(f"INSERT OR {otherwise} INTO {table} VALUES ({marks})", step)  # noqa: S608  our own names
        return count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        self._path.unlink(missing_ok=True)


class NotingWriter(TableWriter):
    """Writes the rows of a plan, and notes their target ids in a `MatchStore`."""

    def __init__(self, writer: TableWriter, store: MatchStore) -> None:
        self._inner = writer
        self._store = store
        self.rows = 0

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append some rows."""
        self._inner.write(batch)
        self._store.note(batch)
        self.rows += batch.num_rows


def numbered(records: Iterable[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records that have an id, with it."""
    for record in records:
        if (number := whole_number(record.get("id"))) is not None:
            yield number, record


def sealing(resource_type: ResourceType, key: PersonalKey | None) -> Callable[[str], str | bytes]:
    """Returns what encrypts a record on disk: of users where there is a key, and else nothing."""
    if key is None or resource_type.resource not in PERSONAL:
        return str
    seal = key.seal
    return lambda text: seal(text.encode())


def unsealing(resource_type: ResourceType, key: PersonalKey | None) -> Callable[[Any], str | bytes]:
    """Returns what decrypts a record that `sealing` encrypted."""
    return key.unseal if key is not None and resource_type.resource in PERSONAL else str


def _keys(resource_type: ResourceType, values: Mapping[str, Any]) -> Iterator[bytes | None]:
    """The digests of the key of a record: as it is written, and without case."""
    for folded in (False, True):
        yield key_digest(resource_type.key(values, folded=folded))


def key_digest(key: str | None) -> bytes | None:
    """The stored form of the key of a record."""
    return hashlib.sha256(key.encode()).digest()[:16] if key is not None else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_PREPARED_RECORD_DECODER = msgspec.json.Decoder(PreparedRecord)
_NUMBERS_DECODER = msgspec.json.Decoder(list[int])
