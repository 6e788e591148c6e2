"""References of a record of the source as those of the target, and which of them have to wait until the record that they lead to is there.

A record is created after those to which it refers. Where the order does not allow that, it is created without the reference, which a second
request sets once all records are there: its own resource may have circles, and another one may be written later.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NamedTuple

import msgspec

from pipelines.migration.model.comparable import Form
from pipelines.migration.model.plan import PlannedReference
from pipelines.migration.model.reasons import (
    AT_MISSING_LOCATION,
    REFERENCE_MISSING,
    REQUIRED_MISSING,
    REQUIRED_NOT_TAKEN,
    TASK_COMPLETED,
)
from pipelines.migration.model.resource_types import COMPLETED, LOCATIONS, ResourceType, is_written_later
from pipelines.records.left_out import LeftOut
from pipelines.records.values import RecordId

FindTarget = Callable[[str, RecordId], tuple[bool, RecordId | None]]
"""Whether a record of the source is, or will be, in the target; and its id there, if it has one yet."""


class MappedForm(NamedTuple):
    """A record of the source as it will be sent."""

    values: dict[str, Any]
    """References are ids of the target; one to a record that is still to be created is `{"source": id}`."""
    references: dict[str, PlannedReference]
    """Field → references to records that are still to be created."""
    unsent: dict[str, Any]
    """Path → value that is not sent, and in `why` the code of the reason."""
    why: dict[str, str]
    unknown: frozenset[str]
    """Fields whose value is not sent, so that the target keeps its own."""
    empty: dict[str, Any]
    reason: str | None
    """Why it cannot be created (quarantine.py)."""
    after: tuple[str, ...] = ()
    """The fields that a request of their own sets, once it is created."""


def mapped(resource: ResourceType, form: Form, find_target: FindTarget) -> MappedForm:
    """The record with its references led to what they are in the target."""
    values, unsent, why = {**form.values}, {**form.unsent}, {**form.why}
    references: dict[str, PlannedReference] = {}
    after = tuple(name for name, code in why.items() if code == LeftOut.BY_ACTION)
    is_completed = unsent.get(COMPLETED) and COMPLETED not in after and resource.resource == "tasks"
    reason = TASK_COMPLETED if is_completed else None
    for name, referred in resource.references.items():
        if name not in values:
            continue
        field, many = resource.fields[name], isinstance(values[name], list)
        entries = values[name] if many else [values[name]]
        pairs, compared, missing = list[tuple[RecordId, RecordId | None]](), list[Any](), dict[int, Any]()
        for position, entry in enumerate(entries):
            source_id = field.id_of(entry) or 0
            is_there, target_id = find_target(referred, source_id)
            if not is_there:
                missing[position] = entry
                continue
            pairs.append((source_id, target_id))
            led_to = {"source": source_id} if target_id is None else target_id
            compared.append(field.with_id(entry, led_to))
        left_out = {f"{name}[{position}]" if many else name: entry for position, entry in missing.items()}
        unsent |= left_out
        why |= dict.fromkeys(left_out, resource.why_missing(name))
        if missing and not many and resource.needs_references and not is_written_later(referred, resource.resource):
            reason = AT_MISSING_LOCATION if referred == LOCATIONS else REFERENCE_MISSING
        if not pairs:
            del values[name]
            continue
        values[name] = compared if many else compared[0]
        if any(target_id is None for _source_id, target_id in pairs):
            source_ids, target_ids = zip(*pairs, strict=True)
            references[name] = PlannedReference(
                referred, [*source_ids], [*target_ids], many, entries=compared if field.inside else []
            )
    not_taken = {path.partition("[")[0] for path in unsent}
    lacking = {name for name in resource.required if name not in values and name not in form.empty}
    if reason is None and lacking:
        reason = REQUIRED_NOT_TAKEN if lacking <= not_taken else REQUIRED_MISSING
    unknown = not_taken.intersection((*resource.references, *resource.learned)) - values.keys()
    return MappedForm(values, references, unsent, why, frozenset(unknown), form.empty, reason, after)


def mark_waiting(
    resource: str, source_id: RecordId, record: MappedForm, precedes: Callable[[RecordId, RecordId], bool]
) -> MappedForm:
    """Mark the references that have to wait for a second request. `precedes`: whether one record is created before another."""
    for reference in record.references.values():
        waits_for = [
            other
            for other, target_id in zip(reference.source_ids, reference.target_ids, strict=True)
            if target_id is None and not (reference.resource == resource and precedes(other, source_id))
        ]
        reference.later = bool(waits_for) and is_written_later(reference.resource, resource)
    return record


def with_known_references(resource: ResourceType, unknown: Container[str]) -> ResourceType:
    """The type without references to these resources, whose records are not matched yet."""
    fields = {name: field for name, field in resource.fields.items() if field.leads_to not in unknown}
    required = tuple(name for name in resource.required if name in fields or name not in resource.fields)
    return msgspec.structs.replace(resource, fields=fields, required=required)
