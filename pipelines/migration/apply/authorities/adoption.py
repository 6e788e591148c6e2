"""Adopts authorities that the service made by itself, of the authors of publications, before the plan would create them.

They are written after the publications. Just before, the target lists them once more: a record that is new since the plan was made, that no
plan wrote, and that alone has the key of a planned create is taken for it. It is not created again, and gets what it lacks.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgspec

from pipelines.migration.apply.row_result import Adopted
from pipelines.migration.apply.target_records import ReadListing, TargetRecords
from pipelines.migration.apply.writer import Writer
from pipelines.migration.model.comparison_database import in_steps
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import FailedWriteError, JournalEntry, WriteKind
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.migration.model.resource_types import AUTHORITIES, ResourceType, adopts
from pipelines.migration.model.target_reading import TargetListing, numbered
from pipelines.migration.plan.field_merge import FieldVerdict, merge_field


@contextmanager
def adopting(
    plan: Plan, journal: Journal, writer: Writer, read_listing: ReadListing, resource_type: ResourceType
) -> Iterator[None]:
    """Let a writer adopt authorities while it writes this resource; it sends the requests of one listing where a plan may adopt any."""
    if resource_type.resource != AUTHORITIES or not adopts(plan.facts.counts):
        yield
        return
    with closing(Adoption(plan, journal, writer.records, resource_type)) as adoption:
        with read_listing(AUTHORITIES) as listing:
            adoption.add_new(listing)
        writer.find_adopted = adoption.find
        try:
            yield
        finally:
            writer.find_adopted = None


class Adoption:
    """Finds the records to adopt. Several threads may call it. Those that are new are in a temporary file of SQLite's own (I11)."""

    def __init__(self, plan: Plan, journal: Journal, records: TargetRecords, resource_type: ResourceType) -> None:
        self._plan = plan
        self._journal = journal
        self._records = records
        self._type = resource_type
        self._lock = threading.Lock()
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("CREATE TABLE new (id INTEGER PRIMARY KEY, key TEXT, content BLOB)")
        self._db.execute("CREATE INDEX by_key ON new (key)")

    def add_new(self, listing: TargetListing) -> None:
        """Add the records of a listing that are new since the plan was made, and that no plan wrote."""
        resource = self._type.resource
        for batch in in_steps(numbered(listing.records())):
            ids = {number for number, _record in batch}
            known_ids = self._plan.ids_when_planned(resource, ids) | self._journal.known_ids(resource, ids)
            new = ((number, self._type.whole_values(record)) for number, record in batch if number not in known_ids)
            self._db.executemany(
                "INSERT INTO new VALUES (?, ?, ?)",
                ((number, self._type.key(values), msgspec.json.encode(values)) for number, values in new),
            )

    def find(self, row: PlanRow, entry: JournalEntry | None) -> Adopted | None:
        """The record that is adopted for a row, entered as intended in the journal; None where there is none.

        `entry`: an earlier adoption that is not done. Raises `FailedWriteError` where several records fit.
        """
        if entry is not None and entry.target_id is not None:
            record = self._records.current(row.resource, entry.target_id)
            if record is None:
                self._journal.withdraw(entry.number)  # somebody deleted or merged the record meanwhile
                return None
            return self._as_change(row, entry.target_id, self._type.whole_values(record))
        values = self._type.values(row.payload) | {name: {"source": 0} for name in row.references}
        with self._lock:  # of rows with the same key, only one adopts a record
            query = "SELECT id, content FROM new WHERE key = ? ORDER BY id LIMIT 6"
            new = self._db.execute(query, (self._type.key(values),)).fetchall()
            if len(new) > 1:
                raise self._refused(row, [number for number, _content in new])
            if not new:
                return None
            [(number, content)] = new
            self._db.execute("DELETE FROM new WHERE id = ?", (number,))
        adopted = self._as_change(row, number, msgspec.json.decode(content))
        self._intend(row, number)
        return adopted

    def close(self) -> None:
        """Remove what was read."""
        self._db.close()

    def _as_change(self, row: PlanRow, target_id: int, values: dict[str, object]) -> Adopted:
        """The row as a change by the rule of every patch: it adds what the record lacks, and replaces nothing."""
        source, target = self._type.compared(row.payload), self._type.compared(values)
        verdicts = {
            name: merge_field(
                source.get(name),
                target.get(name),
                overwrite=self._plan.facts.overwrite,
                is_set=name in self._type.lists,
                guarded=name in self._type.guarded,
            )
            for name in row.payload
        }
        payload = {name: row.payload[name] for name, verdict in verdicts.items() if verdict == FieldVerdict.PATCH}
        before = {name: values.get(name) for name in payload}
        differing = [name for name, verdict in verdicts.items() if verdict == FieldVerdict.CONFLICT]
        left_out = (
            [f"{', '.join(differing)}: the service made record {target_id} itself, with another value; it stays."]
            if differing
            else []
        )
        changed = msgspec.structs.replace(row, target_id=target_id, payload=payload, before=before)
        return Adopted(changed, left_out)

    def _intend(self, row: PlanRow, target_id: int | None) -> int:
        key = (self._plan.name, row.resource, row.source_id, WriteKind.ADOPT)
        return self._journal.intend(*key, target_id=target_id)

    def _refused(self, row: PlanRow, ids: list[int]) -> FailedWriteError:
        message = (
            f"It was not created: the target has several new records of its name now, {', '.join(map(str, ids[:5]))}. Make a new plan, and "
            "decide there which of them it is."
        )
        return self._journal.refused(self._intend(row, None), message)
