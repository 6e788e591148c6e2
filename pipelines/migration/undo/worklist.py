"""Lists what an undo has to take back: one item for each record that the plan wrote, the last record first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.migration.apply.target_lists import TargetLists
from pipelines.migration.model.actions import WRITTEN_ACTIONS
from pipelines.migration.model.comparable import RECORDS
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState, is_unsettled
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.plan.files import described_files
from pipelines.records.files import AttachedFile
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import open_table

OPEN = (WriteState.DONE, WriteState.INTENDED, WriteState.PARKED)
"""States of writes that may have had an effect on the target."""


class UndoItem(NamedTuple):
    """One record of a plan, with everything that decides what is taken back."""

    plan: str
    row: PlanRow
    entries: list[JournalEntry]
    """The journal entries of the record, of every plan."""
    files_before: list[AttachedFile]
    """The files that the record had when the plan was made."""
    listed: Mapping[str, Any] | None = None
    """For resources other than publications: the record in the target's list; None where it is missing there."""

    @property
    def open_entries(self) -> list[JournalEntry]:
        """The writes of this plan that are not taken back yet."""
        return [entry for entry in self.entries if entry.plan == self.plan and entry.state in OPEN]

    @property
    def creation(self) -> JournalEntry | None:
        """The entry by which this plan created the record, if it did."""
        return next((entry for entry in self.open_entries if entry.kind == WriteKind.CREATE), None)

    @property
    def links(self) -> list[JournalEntry]:
        """The entries by which this plan set references to records that were created later."""
        return [entry for entry in self.open_entries if entry.kind == WriteKind.LINK]

    @property
    def target_id(self) -> int | None:
        """Id of the record in the target."""
        ids = (entry.target_id for entry in self.open_entries if entry.target_id is not None)
        return next(ids, self.row.target_id)

    @property
    def doubt(self) -> str:
        """Why it is unknown whether the record was created; empty where it is known."""
        if self.creation is None or not is_unsettled(self.creation):
            return ""
        return self.creation.message or "the response to its creation was lost; undo with --really looks it up"


def worklist(plan: Plan, journal: Journal, target_lists: TargetLists) -> Iterator[UndoItem]:
    """Yield the items of a plan, the last row first; one row group is in memory.

    `target_lists`: the records of the other resources to which the plan wrote.
    """
    for rows in _rows_backwards(plan):
        written = []
        for row in rows:
            entries = journal.of_record(row.resource, row.source_id)
            if any(entry.plan == plan.name and entry.state in OPEN for entry in entries):
                written.append((row, entries))
        files = _files_before(plan, [row.target_id for row, _entries in written if row.target_id is not None])
        for row, entries in written:
            item = UndoItem(plan.name, row, entries, files.get(row.target_id, []))
            if row.resource != PUBLICATIONS and item.target_id is not None:
                item = item._replace(listed=target_lists.record(row.resource, item.target_id))
            yield item


def _rows_backwards(plan: Plan) -> Iterator[list[PlanRow]]:
    """The rows that create or patch, from the last one to the first, one row group at a time."""
    for path, key in reversed([*plan.tables()]):
        with storage_errors(plan.folder), open_table(path, key) as file:
            for group in reversed(range(file.num_row_groups)):
                rows = file.read_row_group(group).to_pylist()
                yield [plan.row(row) for row in reversed(rows) if row["action"] in WRITTEN_ACTIONS]


def _files_before(plan: Plan, ids: Sequence[int]) -> dict[int | None, list[AttachedFile]]:
    """Id in the target → the files of that record when the plan was made."""
    if not ids:
        return {}
    with storage_errors(plan.folder):
        in_range = (pc.field("id") >= min(ids)) & (pc.field("id") <= max(ids))  # skips most row groups
        records = pq.read_table(
            plan.target.path(RECORDS), columns=["id", "files"], filters=in_range & pc.field("id").isin(list(ids))
        )
    return {row["id"]: described_files(row["files"]) for row in records.to_pylist()}
