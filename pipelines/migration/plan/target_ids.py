"""Which record of the target each record of the source is: noted while a plan is made, and kept with it, because references need it.

In a SQLite file, so that memory does not grow with the library (I11). It has ids and nothing else, in columns without a type: "007" stays.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from pipelines.file_access import make_file
from pipelines.migration.model.actions import PRESENT_ACTIONS, Action
from pipelines.migration.model.plan import IDS
from pipelines.migration.model.resource_types import is_written_later
from pipelines.records.values import RecordId, record_id
from pipelines.store.durable import storage_errors

_SCHEMA = """
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
    CREATE TABLE IF NOT EXISTS planned
        (resource TEXT, source_id, target_id, PRIMARY KEY (resource, source_id)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS matched (resource TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS merged (resource TEXT, id, remains, PRIMARY KEY (resource, id));
    CREATE TEMP TABLE placed (place INTEGER PRIMARY KEY, id UNIQUE);
"""


class TargetIds:
    """The target ids of all resources that were matched. `folder`: that of the plan."""

    def __init__(self, folder: Path, *, same_library: bool) -> None:
        path = folder / IDS
        self._path = path
        self._same_library = same_library
        with storage_errors(path):
            if not path.exists():
                make_file(path)
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.executescript(_SCHEMA)
            self._known = {resource for (resource,) in self._db.execute("SELECT resource FROM matched")}
            self.merged = {
                (resource, number): remains
                for resource, number, remains in self._db.execute("SELECT * FROM merged").fetchall()
            }
        """Resource and id of each record of the target that the plan merges into another → that one."""

    def note(self, batch: pa.RecordBatch | pa.Table, *, to_be_created: bool = True) -> None:
        """Store the target ids of rows of the plan. `to_be_created`: whether the plan creates the records that the target lacks."""
        names = ("resource", "source_id", "target_id", "action")
        rows = [
            (resource, record_id(source_id), None if action == Action.CREATE else record_id(target_id))
            for resource, source_id, target_id, action in zip(
                *(batch.column(name).to_pylist() for name in names), strict=True
            )
            if (action == Action.CREATE and to_be_created)
            or (target_id is not None and action in (*PRESENT_ACTIONS[1:], Action.CONFLICT))
        ]
        self._insert("INSERT OR REPLACE INTO planned VALUES (?, ?, ?)", rows)

    def mark_matched(self, resource: str) -> None:
        """Its records are matched: those that are not noted are not in the target."""
        self._known.add(resource)
        self._insert("INSERT OR IGNORE INTO matched VALUES (?)", [(resource,)])

    def note_merge(self, resource: str, ids: Iterable[RecordId], remains: RecordId) -> None:
        """The plan merges these records of the target into another one."""
        self.merged |= {(resource, number): remains for number in ids}

    def merged_before(self, resource: str) -> dict[tuple[str, RecordId], RecordId]:
        """What of `merged` is written before a resource."""
        return {key: remains for key, remains in self.merged.items() if not is_written_later(key[0], resource)}

    def save_merges(self) -> None:
        """Keep them with the plan."""
        rows = ((resource, number, remains) for (resource, number), remains in self.merged.items())
        self._insert("INSERT INTO merged VALUES (?, ?, ?)", rows)

    def knows(self, resource: str) -> bool:
        """Whether references to a resource can be led to the target."""
        return resource in self._known or self._same_library

    def is_matched(self, resource: str) -> bool:
        """Whether the records of a resource are matched."""
        return resource in self._known

    def keep_order(self, ids: Iterable[RecordId]) -> None:
        """Remember the order in which the records of a resource are created."""
        self._db.execute("DELETE FROM placed")
        self._insert("INSERT OR IGNORE INTO placed (id) VALUES (?)", ((number,) for number in ids))

    def precedes(self, source_id: RecordId, other_id: RecordId) -> bool:
        """Whether a record of the source is created before another one of the resource."""
        ((is_first,),) = self._db.execute(
            "SELECT coalesce((SELECT place FROM placed WHERE id = ?) < (SELECT place FROM placed WHERE id = ?), false)",
            (source_id, other_id),
        ).fetchall()
        return bool(is_first)

    def target_of(self, resource: str, source_id: RecordId) -> tuple[bool, RecordId | None]:
        """Whether a record is, or will be, in the target; and its id there, if it has one yet."""
        row = self._db.execute(
            "SELECT target_id FROM planned WHERE resource = ? AND source_id = ?", (resource, source_id)
        ).fetchone()
        if row is not None:
            return True, row[0]
        return (True, source_id) if self._same_library and resource not in self._known else (False, None)

    def _insert(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with storage_errors(self._path):
            self._db.executemany(statement, rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
