"""The references of a row to other records: fills in ids that earlier rows have created, and leaves out what the service refuses.

References to records that later rows create are links: they are set by a request of their own, once all rows are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from pipelines.errors import AccessDeniedError, RefusedError
from pipelines.inventory import record_path
from pipelines.migration.apply.row_result import LeftRowError
from pipelines.migration.model.actions import Action
from pipelines.migration.model.journal_entries import FailedWriteError, WriteKind
from pipelines.migration.model.plan import PlannedReference, PlanRow
from pipelines.migration.model.resource_types import USERS
from pipelines.migration.model.step import Step
from pipelines.records.values import RecordId

LOOKED_UP = (USERS,)
"""Resources of which a record can be looked up. No endpoint reads an organization (service.md#not-shown)."""


class UntriedReferenceError(LeftRowError):
    """A row refers to a record that this plan creates and no apply has tried to: it is outside of the selection, and the row waits."""

    waits = True


def own_references(row: PlanRow) -> set[RecordId]:
    """The records of its own resource that have to be created before a row is written."""
    return {
        source_id
        for reference in row.references.values()
        for resource, source_id, target_id in reference.records
        if resource == row.resource and target_id is None and not reference.later
    }


class References:
    """Resolves the references of a plan's rows with the help of the journal."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._types = step.types

    def resolve(self, row: PlanRow, problems: list[str], *, later: bool = False) -> PlanRow:
        """Returns the row with the ids of the records to which it refers, without its links; or `later` as a change that sets these.

        Where such a record could not be created, a record that does not need it goes without the reference, which is added to `problems`;
        any other is refused: `FailedWriteError`. Raises `UntriedReferenceError` where nobody has tried to.
        """
        if not row.references:
            return row
        chosen = {name: reference for name, reference in row.references.items() if reference.later == later}
        values = self._values(row, chosen, problems)
        expected = {name: self._types[row.resource].digest_of(name, value) for name, value in values.items()}
        if later:
            return replace(row, payload=values, expected=expected, references={}, files=[])
        return replace(row, payload=row.payload | values, expected=row.expected | expected, references={})

    def _values(self, row: PlanRow, references: Mapping[str, PlannedReference], problems: list[str]) -> dict[str, Any]:
        target_ids = {name: self._target_ids(row, name, reference, problems) for name, reference in references.items()}
        fields = self._types[row.resource].fields
        return {
            name: references[name].value(fields[name], ids)
            for name, ids in target_ids.items()
            if len(ids) == len(references[name].records) or (ids and name not in row.payload)
        }

    def _target_ids(self, row: PlanRow, name: str, reference: PlannedReference, problems: list[str]) -> list[RecordId]:
        """The ids for one field; the first ones only, or none, where a record goes without the rest."""
        needed = reference.later or self._types[row.resource].needs_references
        ids: list[RecordId] = []
        for resource, source_id, planned_id in reference.records:
            target_id = planned_id or self._step.journal.target_id_of(resource, source_id)
            if target_id is None and self._is_untried(resource, source_id):
                raise UntriedReferenceError
            if target_id is None and not needed:
                problems.append(f"{name}: {resource} {source_id} was not created; the next plan sets it.")
                break
            if target_id is None:
                raise self._refused(
                    row,
                    f"{name}: {resource} {source_id}, to which it refers, was not created. Once that record is there, apply "
                    "the plan again.",
                    is_link=reference.later,
                )
            ids.append(target_id)
        return ids

    def _is_untried(self, resource: str, source_id: RecordId) -> bool:
        return (WriteKind.CREATE, "") not in self._step.journal.writes(self._step.plan.name, resource, source_id)

    def without_missing(self, row: PlanRow, refusal: RefusedError, problems: list[str]) -> PlanRow | None:
        """Returns a row without the references that the target certainly lacks; None where none is certainly the reason, or it needs them.

        A reference to a deleted record must not cost the record itself (service.md#references). A 404 names no field, so each reference is
        looked up before it is left out; one without an endpoint stays. What is left out is added to `problems`.
        """
        resource_type = self._types[row.resource]
        if resource_type.needs_references or not is_record_not_found(refusal):
            return None
        missing = {name: numbers for name in resource_type.references if (numbers := self._missing(row, name))}
        for name, numbers in missing.items():
            for resource, number in sorted(numbers, key=str):
                problem = f"{name} {number}: not sent, the target has no such record ({resource}/{number}). {refusal}"
                if problem not in problems:
                    problems.append(problem)
        if not missing:
            return None
        values = dict[str, Any]()
        for name, gone in missing.items():
            field = resource_type.fields[name]
            rest = field.with_ids(row.payload[name], lambda *record, gone=gone: None if record in gone else record[1])
            values |= {} if rest is None else {name: rest}
        expected = {name: resource_type.digest_of(name, value) for name, value in values.items()}
        reduced = row.without(missing)
        return replace(reduced, payload=reduced.payload | values, expected=reduced.expected | expected)

    def _missing(self, row: PlanRow, name: str) -> set[tuple[str, RecordId]]:
        """The records to which a field leads, or the objects of its list, and which the target certainly lacks, with their resources."""
        value = row.payload.get(name)
        referred = {*self._types[row.resource].fields[name].led_to(value)} if value is not None else ()
        return {record for record in referred if record[0] in LOOKED_UP and self._is_missing(*record)}

    def _is_missing(self, resource: str, number: RecordId) -> bool:
        """Whether the service says that there is no such record; any other answer leaves that open."""
        try:
            self._step.client.get_record(record_path(resource, number))
        except RefusedError as refusal:
            return is_record_not_found(refusal)
        except AccessDeniedError:
            return False
        return False

    def _refused(self, row: PlanRow, message: str, *, is_link: bool) -> FailedWriteError:
        kind = WriteKind.CREATE if row.action == Action.CREATE else WriteKind.PATCH
        kind = WriteKind.LINK if is_link else kind
        number = self._step.intend(row, kind, target_id=row.target_id)
        return self._step.journal.refused(number, message)


def is_record_not_found(refusal: RefusedError) -> bool:
    """Whether a refusal says that a record does not exist; a 404 alone may say that of an address or of an upload (service.md#errors)."""
    return refusal.status == HTTPStatus.NOT_FOUND and refusal.code == "RecordNotFound"
