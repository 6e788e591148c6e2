"""Adopts authorities that the service made by itself, of the authors of publications, before the plan would create them.

They are written after the publications. Just before, the target lists them once more: a record that is new since the plan was made, that no
plan wrote, and that alone has the key of a planned create is taken for it. It is not created again, and gets what it lacks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pipelines.migration.apply.row_result import Adopted
from pipelines.migration.apply.target_lists import TargetLists, read_target_lists
from pipelines.migration.apply.writer import Writer
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import FailedWriteError, JournalEntry, WriteKind
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.migration.model.plan_folders import workdir
from pipelines.migration.model.resource_types import AUTHORITIES, adopts
from pipelines.migration.model.target_reading import TargetListing
from pipelines.migration.plan.field_merge import FieldVerdict, merge_field

ReadAuthorities = Callable[[Path], TargetListing]
"""Lists the authorities of the target now, into a folder."""


@contextmanager
def adopting(plan: Plan, journal: Journal, writer: Writer, read: ReadAuthorities, resource: str) -> Iterator[None]:
    """Let a writer adopt authorities while it writes this resource; it sends the requests of one listing where a plan may adopt any."""
    if resource != AUTHORITIES or not adopts(plan.facts.counts):
        yield
        return
    with workdir(plan) as folder, read_target_lists(folder, {resource: read(folder)}) as lists:
        writer.find_adopted = Adoption(plan, journal, lists).find
        try:
            yield
        finally:
            writer.find_adopted = None


class Adoption:
    """Finds the records to adopt in the target's `lists`. Several threads may call it."""

    def __init__(self, plan: Plan, journal: Journal, lists: TargetLists) -> None:
        self._plan = plan
        self._journal = journal
        self._lists = lists
        self._lock = threading.Lock()

    def find(self, row: PlanRow, entry: JournalEntry | None) -> Adopted | None:
        """The record that is adopted for a row, entered as intended in the journal; None where there is none.

        `entry`: an earlier adoption that is not done. Raises `FailedWriteError` where several records fit.
        """
        with self._lock:  # of rows with the same key, only one adopts a record
            begun = entry.target_id if entry is not None else None
            ids = [begun] if begun is not None else self._lists.new_matches(self._plan, self._journal, row)
            if len(ids) > 1:
                raise self._refused(row, ids)
            values = self._lists.record(row.resource, ids[0]) if ids else None
            if values is None:
                if entry is not None:
                    self._journal.withdraw(entry.number)  # somebody deleted or merged the record meanwhile
                return None
            adopted = self._as_change(row, ids[0], dict(values))
            if begun is None:
                self._intend(row, ids[0])
        return adopted

    def _as_change(self, row: PlanRow, target_id: int, values: dict[str, object]) -> Adopted:
        """The row as a change by the rule of every patch: it adds what the record lacks, and replaces nothing."""
        if row.type is None:
            raise ValueError(f"{row.resource} {row.source_id} has no type")
        source, target = row.type.compared(row.payload), row.type.compared(values)
        verdicts = {
            name: merge_field(
                source.get(name),
                target.get(name),
                overwrite=self._plan.facts.overwrite,
                is_set=name in row.type.lists,
                guarded=name in row.type.guarded,
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
        self._journal.refused(self._intend(row, None), message)
        return FailedWriteError(message)
