"""References of a record of the source as those of the target, and which of them have to wait until the record that they lead to is there.

A record is created after those to which it refers. Where the order does not allow that, it is created without the reference, which a second
request sets once all records are there: its own resource may have circles, and another one may be written later.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import Any, NamedTuple

import msgspec

from pipelines.migration.model.comparable import Form
from pipelines.migration.model.field_mapping import LEFT_OUT, NOTHING, OPEN, several
from pipelines.migration.model.plan import PlannedReference, Referred
from pipelines.migration.model.reasons import (
    AT_MISSING_LOCATION,
    REFERENCE_MISSING,
    REQUIRED_MISSING,
    REQUIRED_NOT_TAKEN,
    TASK_COMPLETED,
)
from pipelines.migration.model.resource_types import COMPLETED, LOCATIONS, ResourceType, is_written_later, was_done
from pipelines.records.additional_fields import in_snake_case
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import objects_of
from pipelines.records.values import RecordId

FindTarget = Callable[[str, RecordId], tuple[bool, RecordId | None]]
"""Whether a record of the source is, or will be, in the target; and its id there, if it has one yet."""


_WHY_OF_KIND = {"": LeftOut.UNKNOWN_REFERENCE, OPEN: LeftOut.UNKNOWN_REFERENCE, LEFT_OUT: LeftOut.NOT_MAPPED}
"""Why a reference is not sent whose kind leads nowhere."""


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
    """Why it cannot be created: the code of a reason."""
    after: tuple[str, ...] = ()
    """The requests of their own that set fields, once it is created: as `ResourceType.after_create` names them."""


def mapped(resource_type: ResourceType, form: Form, find_target: FindTarget) -> MappedForm:
    """The record with its references led to what they are in the target."""
    values, unsent, why = {**form.values}, {**form.unsent}, {**form.why}
    references: dict[str, PlannedReference] = {}
    after = tuple(
        resource_type.action_of(path, unsent[path]) for path, code in why.items() if code == LeftOut.BY_ACTION
    )
    completed = next((path for path in unsent if in_snake_case(path) == COMPLETED), "")
    is_completed = was_done(unsent.get(completed)) and completed not in after and resource_type.resource == "tasks"
    reason = TASK_COMPLETED if is_completed else None
    for name in resource_type.references:
        if name not in values:
            continue
        field, many = resource_type.fields[name], isinstance(values[name], list)
        records, planned = list[Referred](), list[Any]()
        for position, entry in enumerate(several(values[name])):
            led_to = list[Referred]()
            try:
                planned.append(field.with_ids(entry, partial(_led_to, find_target, led_to)))
            except _MissingRecordError as missing:
                path, referred = f"{name}[{position}]" if many else name, missing.resource
                code = _WHY_OF_KIND.get(referred, resource_type.why_missing(name))
                rest, left_out = _without_records(resource_type, name, path, entry)
                planned += rest
                unsent |= left_out
                why |= dict.fromkeys(left_out, code)
                is_needed = resource_type.needs_references and code == LeftOut.NO_RECORD and not many
                if is_needed and not is_written_later(referred, resource_type.resource):
                    reason = AT_MISSING_LOCATION if referred == LOCATIONS else REFERENCE_MISSING
            else:
                records += led_to
        if not planned:
            del values[name]
            continue
        values[name] = planned if many else planned[0]
        if any(record.target_id is None for record in records):
            references[name] = PlannedReference(records, values[name])
    not_taken = {path.partition("[")[0] for path in unsent}
    lacking = {name for name in resource_type.required if name not in values and name not in form.empty}
    if reason is None and lacking:
        reason = REQUIRED_NOT_TAKEN if lacking <= not_taken else REQUIRED_MISSING
    unknown = not_taken.intersection((*resource_type.references, *resource_type.learned)) - values.keys()
    return MappedForm(values, references, unsent, why, frozenset(unknown), form.empty, reason, after)


def _without_records(resource_type: ResourceType, name: str, path: str, entry: Any) -> tuple[list[Any], dict[str, Any]]:
    """What is sent of an entry that leads to a record which the target lacks; and path → value of what is not."""
    if name not in resource_type.sent_without_references:
        return [], {path: entry}
    rest = resource_type.fields[name].without_references([entry])
    return rest, {f"{path}.{member}": value for member, value in entry.items() if member not in rest[0]}


class _MissingRecordError(Exception):
    """The target has no record to which a reference leads; or nobody said where it leads."""

    def __init__(self, resource: str) -> None:
        super().__init__(resource)
        self.resource = resource


def _led_to(find_target: FindTarget, records: list[Referred], resource: str, source_id: RecordId) -> Any:
    """The id of a record in the target, `{"source": id}` if it has none yet; it is noted in `records`. Plain numbers are what they are."""
    if resource in _WHY_OF_KIND:
        raise _MissingRecordError(resource)
    is_there, target_id = (True, source_id) if resource == NOTHING else find_target(resource, source_id)
    if not is_there:
        raise _MissingRecordError(resource)
    records.append(Referred(resource, source_id, target_id))
    return {"source": source_id} if target_id is None else target_id


def mark_waiting(
    resource_type: ResourceType,
    source_id: RecordId,
    record: MappedForm,
    precedes: Callable[[RecordId, RecordId], bool],
) -> MappedForm:
    """Mark the references that have to wait for a second request, and what objects say beside them.

    An object that has what names the record is its content, and is sent at once. `precedes`: whether one record is created before another.
    """
    resource = resource_type.resource
    for reference in record.references.values():
        reference.later = any(
            target_id is None
            and is_written_later(referred, resource)
            and not (referred == resource and precedes(other, source_id))
            for referred, other, target_id in reference.records
        )
    waiting = {name.rpartition("/")[0] for name, reference in record.references.items() if reference.later}
    waiting -= {"", *objects_of(resource_type.key_fields)}
    for name, value in record.values.items() if waiting else ():
        if name.rpartition("/")[0] in waiting:
            record.references.setdefault(name, PlannedReference([], value)).later = True
    return record


def with_known_references(resource_type: ResourceType, unknown: Container[str]) -> ResourceType:
    """The type without references to these resources, whose records are not matched yet."""
    fields = {
        name: field
        for name, field in resource_type.fields.items()
        if not any(name in unknown for name in field.resources)
    }
    required = tuple(name for name in resource_type.required if name in fields or name not in resource_type.fields)
    return msgspec.structs.replace(resource_type, fields=fields, required=required)
