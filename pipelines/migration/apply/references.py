"""The references of a row to other records: fills in ids that earlier rows have created, and leaves out what the service refuses."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from pipelines.errors import RefusedError
from pipelines.migration.apply.digests import RecordDigests
from pipelines.migration.model.actions import Action
from pipelines.migration.model.journal import FailedWriteError, Journal, WriteKind
from pipelines.migration.model.plan import PlannedReference, PlanRow
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.publication_fields import REFERENCES


class References:
    """Resolves the references of a plan's rows with the help of the journal."""

    def __init__(self, plan: str, journal: Journal, digests: RecordDigests) -> None:
        self._plan = plan
        self._journal = journal
        self._digests = digests

    def resolve(self, row: PlanRow, problems: list[str]) -> PlanRow:
        """Returns the row with the ids of the records to which it refers.

        Where such a record was not created, a publication goes without the reference, which is added to `problems`; any other record is
        refused: `FailedWriteError`.
        """
        if not row.references:
            return row
        payload, expected = dict(row.payload), dict(row.expected)
        for name, reference in row.references.items():
            if ids := self._target_ids(row, name, reference, problems):
                payload[name] = reference.value(ids)
                expected[name] = self._digests.of_field(row.resource, name, payload[name])
        return msgspec.structs.replace(row, payload=payload, expected=expected, references={})

    def _target_ids(self, row: PlanRow, name: str, reference: PlannedReference, problems: list[str]) -> list[int]:
        """The ids for one field; the first ones only, or none, where a publication goes without the rest."""
        ids: list[int] = []
        for source_id, planned_id in zip(reference.source_ids, reference.target_ids, strict=True):
            target_id = planned_id or self._journal.target_id_of(reference.resource, source_id)
            if target_id is None and reference.as_object:
                problems.append(f"{name}: {reference.resource} {source_id} was not created; the next plan sets it.")
                break
            if target_id is None:
                raise self._refused(
                    row,
                    f"{name}: {reference.resource} {source_id}, to which it refers, was not created. Once that record is there, apply "
                    "the plan again.",
                )
            ids.append(target_id)
        return ids

    def _refused(self, row: PlanRow, message: str) -> FailedWriteError:
        kind = WriteKind.CREATE if row.action == Action.CREATE else WriteKind.PATCH
        number = self._journal.intend(self._plan, row.resource, row.source_id, kind, target_id=row.target_id)
        self._journal.refused(number, message)
        return FailedWriteError(message)


def without_references(row: PlanRow, refusal: RefusedError, problems: list[str]) -> PlanRow | None:
    """Returns a publication's row without its references where they may be why it was refused: 404 (service.md#references).

    A reference to a deleted record must not cost the record itself. What is left out is added to `problems`.
    """
    names = [name for name in REFERENCES if row.payload.get(name)] if row.resource == PUBLICATIONS else []
    if refusal.status != HTTPStatus.NOT_FOUND or not names:
        return None
    references = ", ".join(f"{name} {row.payload[name].get('id')}" for name in names)
    problems.append(f"{references}: not sent, the target has no such record. {refusal}")
    payload, expected = (
        {name: fields[name] for name in fields if name not in names} for fields in (row.payload, row.expected)
    )
    return msgspec.structs.replace(row, payload=payload, expected=expected)
