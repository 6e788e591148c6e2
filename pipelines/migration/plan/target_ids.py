"""Which record of the target each record of the source is: noted while a plan is made, because references need it.

In a temporary file of SQLite's own, so that memory does not grow with the library (I11). It has ids and nothing else, in columns without a
type: "007" stays.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Self

from pipelines.migration.model.actions import PRESENT_ACTIONS, Action
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import is_written_later
from pipelines.records.values import RecordId

_SCHEMA = """
    CREATE TABLE planned (resource TEXT, source_id, target_id, place INTEGER PRIMARY KEY, UNIQUE (resource, source_id))
"""

Merged = Mapping[tuple[str, RecordId], RecordId]
"""Resource and id of each record of the target that the plan merges into another → that one."""


def merged_before(merged: Merged, resource: str) -> Merged:
    """Those merges that are written before a resource."""
    return {key: remains for key, remains in merged.items() if not is_written_later(key[0], resource)}


class TargetIds:
    """The target ids of all resources that were matched, in the order in which they were."""

    def __init__(self, *, same_library: bool) -> None:
        self._same_library = same_library
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute(_SCHEMA)
        self._db.execute("BEGIN")  # for as long as the file lives, so that a row costs no transaction of its own
        self._known: set[str] = set()
        self.merged: dict[tuple[str, RecordId], RecordId] = {}

    def note(self, rows: Iterable[PlanRow], *, to_be_created: bool = True) -> None:
        """Store the target ids of rows of the plan, in place of what is known of their records.

        `to_be_created`: whether the plan creates the records that the target lacks.
        """
        for row in rows:
            is_created = row.action == Action.CREATE and to_be_created
            is_there = row.target_id is not None and row.action in (*PRESENT_ACTIONS, Action.CONFLICT)
            if is_created or is_there:
                self._db.execute(
                    "INSERT INTO planned (resource, source_id, target_id) VALUES (?, ?, ?) "
                    "ON CONFLICT DO UPDATE SET target_id = excluded.target_id",
                    (row.resource, row.source_id, row.target_id),
                )
            else:
                self._db.execute(
                    "DELETE FROM planned WHERE resource = ? AND source_id = ?", (row.resource, row.source_id)
                )

    def mark_matched(self, resource: str) -> None:
        """Its records are matched: those that are not noted are not in the target."""
        self._known.add(resource)

    def note_merge(self, resource: str, ids: Iterable[RecordId], remains: RecordId) -> None:
        """The plan merges these records of the target into another one."""
        self.merged |= {(resource, number): remains for number in ids}

    def knows(self, resource: str) -> bool:
        """Whether references to a resource can be led to the target."""
        return resource in self._known or self._same_library

    def is_matched(self, resource: str) -> bool:
        """Whether the records of a resource are matched."""
        return resource in self._known

    def precedes(self, resource: str, source_id: RecordId, other_id: RecordId) -> bool:
        """Whether a record of the source is created before another one of the resource."""
        ((is_first,),) = self._db.execute(
            "SELECT max(CASE source_id WHEN ?2 THEN place END) < max(CASE source_id WHEN ?3 THEN place END) FROM planned "
            "WHERE resource = ?1 AND source_id IN (?2, ?3)",
            (resource, source_id, other_id),
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
