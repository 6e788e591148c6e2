"""Sends the merges of a plan. Each is in the journal before it is sent and after its result is known (I8).

A merge answered by 404, or not at all, may have had its effect: the records of the target decide. Sent twice it does no harm, because the
record that it removes is gone then.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pipelines.errors import RefusedError
from pipelines.inventory import noun
from pipelines.migration.apply.request_forms import RequestForms
from pipelines.migration.apply.row_result import RowResult
from pipelines.migration.apply.target_records import TargetRecords
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal_entries import (
    FailedWriteError,
    JournalEntry,
    WriteKind,
    is_done,
)
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.step import Step
from pipelines.records.values import RecordId, as_id
from pipelines.service.http.envelope import record_with_id


class Merges:
    """Merges records of the target, from several threads at once."""

    def __init__(self, step: Step, forms: RequestForms, records: TargetRecords) -> None:
        self._step = step
        self._journal = step.journal
        self._forms = forms
        self._records = records
        self._lock = threading.Lock()
        self._without_effect: dict[str, str] = {}
        """Resource → why nothing of it is merged any more: a merge cannot be taken back."""

    def settle(self, row: PlanRow, entry: JournalEntry) -> bool:
        """Enter a merge without a response as done, if it had its effect; returns whether it had."""
        remaining = self._remaining(row, as_id(entry.part))
        if remaining is not None:
            self._done(row, entry.number, remaining)
        return remaining is not None

    def send(self, row: PlanRow, part: str, _result: RowResult) -> None:
        """Merge one record of the target into that of a row."""
        number = as_id(part)
        if problem := self._without_effect.get(row.resource):
            raise FailedWriteError(problem)
        written = self._step.intend(row, WriteKind.MERGE, part, target_id=row.target_id, wanted=row.expected)
        try:
            response = self._step.send(self._forms.merge(row, number), written)
        except RefusedError as refusal:
            is_gone = refusal.status == HTTPStatus.NOT_FOUND
            if not is_gone or (remaining := self._remaining(row, number)) is None:
                problem = self._forms.explained(row, WriteKind.MERGE, refusal)
                raise self._journal.refused(written, problem, refusal.status) from None
        else:
            remaining = self._proved(row, number, written, response)
        self._done(row, written, remaining)

    def _proved(self, row: PlanRow, number: RecordId, written: int, response: Any) -> Any:
        """The remaining record: of a response or, where nothing describes the form and this is the first merge, as it is now."""
        if not self._forms.is_open(row, WriteKind.MERGE) or self._forms.is_taken(row, WriteKind.MERGE):
            return response
        remaining = self._remaining(row, number)
        if remaining is not None:
            return remaining
        name = noun(row.resource)
        problem = (
            f"The service answered with success when {name} {number} was to be merged into {row.target_id}, but its records do not show "
            f"that {row.target_id} remains and {number} is gone. No {name} is merged any more: look at both, and merge by hand."
        )
        self._without_effect[row.resource] = problem
        raise self._journal.refused(written, problem)

    def _done(self, row: PlanRow, number: int, remaining: Any) -> None:
        """Enter a merge as done. `remaining`: the remaining record, as far as it is known: a merge may add to its fields."""
        record = record_with_id(remaining, row.existing_target_id) if isinstance(remaining, dict) else {}
        resource_type = self._step.types[row.resource]
        compared = resource_type.compared_record(record)
        held = {name: digest(compared.get(name)) for name in row.expected if resource_type.has(record, name)}
        self._journal.done(number, target_id=row.existing_target_id, held=held)
        for entry in self._step.entries(row).values():
            # An earlier merge, whose fields the journal would take for the newest
            if is_done(entry) and entry.number > number:
                self._journal.done(entry.number, target_id=row.existing_target_id, held=held)

    def _remaining(self, row: PlanRow, number: RecordId) -> Mapping[str, Any] | None:
        """The remaining record as it is now; None unless the other one is gone."""
        with self._lock:
            for merged in (number, row.existing_target_id):
                self._records.changed(row.resource, merged)
            is_gone = self._records.current(row.resource, number) is None
            return self._records.current(row.resource, row.existing_target_id) if is_gone else None
