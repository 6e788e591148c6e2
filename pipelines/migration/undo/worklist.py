"""Lists what an undo has to take back: one item for each record that the plan wrote, the last record first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipelines.migration.model.actions import WRITTEN_ACTIONS
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState, is_done, is_unsettled
from pipelines.migration.model.plan import Plan, PlanRow, plan_row
from pipelines.records.values import RecordId
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import open_table

OPEN = (WriteState.DONE, WriteState.INTENDED, WriteState.PARKED)
"""States of writes that may have had an effect on the target."""


class UndoItem(NamedTuple):
    """One record of a plan, with what `inverse_row` compares its present state."""

    plan: str
    row: PlanRow
    entries: list[JournalEntry]
    """The journal entries of the record, of every plan."""

    @property
    def earlier_entries(self) -> list[JournalEntry]:
        """What earlier plans wrote to the record and nobody took back. A plan replaces only a cover of these."""
        first = min((entry.number for entry in self.open_entries), default=0)
        return [entry for entry in self.entries if entry.number < first and is_done(entry)]

    @property
    def later_plan(self) -> str:
        """The first plan that wrote to the record after this one; empty where none did."""
        last = max((entry.number for entry in self.open_entries), default=0)
        later = (entry for entry in self.entries if entry.plan != self.plan and entry.number > last and is_done(entry))
        return next((entry.plan for entry in later), "")

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
    def target_id(self) -> RecordId | None:
        """Id of the record in the target."""
        ids = (entry.target_id for entry in self.open_entries if entry.target_id is not None)
        return next(ids, self.row.target_id)

    @property
    def doubt(self) -> str:
        """Why it is unknown whether the record was created; empty where it is known."""
        if self.creation is None or not is_unsettled(self.creation):
            return ""
        return self.creation.message or "the response to its creation was lost; undo with --really looks it up"


def worklist(plan: Plan, journal: Journal) -> Iterator[UndoItem]:
    """Yield the items of a plan, the last row first; one row group is in memory."""
    for row in _rows_backwards(plan):
        if (item := item_of(plan, journal, row)).open_entries:
            yield item


def item_of(plan: Plan, journal: Journal, row: PlanRow) -> UndoItem:
    """What the journal has of a row."""
    return UndoItem(plan.name, row, journal.of_record(row.resource, row.source_id))


def _rows_backwards(plan: Plan) -> Iterator[PlanRow]:
    """The rows that create, patch or merge, from the last one to the first, one row group at a time."""
    for path, key in reversed([*plan.tables()]):
        with storage_errors(plan.folder), open_table(path, key) as file:
            for group in reversed(range(file.num_row_groups)):
                rows = file.read_row_group(group).to_pylist()
                yield from (plan_row(row) for row in reversed(rows) if row["action"] in WRITTEN_ACTIONS)
