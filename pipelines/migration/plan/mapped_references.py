"""References of a record of the source as those of the target, and which of them have to wait until the record that they lead to is there.

A record is created after those to which it refers. Where the order does not allow that, it is created without the reference, which a second
request sets once all records are there: its own resource may have circles, and another one may be written later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from pipelines.migration.model.comparable import Form
from pipelines.migration.model.field_mapping import LEFT_OUT, NOTHING, OPEN, FieldMapping, plain_text, several
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
    at_once: dict[str, Any]
    """Field of these whose value is sent without them first → that value."""
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


def mapped(
    resource_type: ResourceType, form: Form, find_target: FindTarget, in_target: Form | None = None
) -> MappedForm:
    """The record with its references led to what they are in the target. `in_target`: what the target has, where the record is there."""
    values, unsent, why = {**form.values}, {**form.unsent}, {**form.why}
    references, at_once = dict[str, PlannedReference](), dict[str, Any]()
    after = tuple(
        resource_type.action_of(path, unsent[path]) for path, code in why.items() if code == LeftOut.BY_ACTION
    )
    completed = next((path for path in unsent if in_snake_case(path) == COMPLETED), "")
    is_completed = was_done(unsent.get(completed)) and completed not in after and resource_type.resource == "tasks"
    reason = TASK_COMPLETED if is_completed else None
    for name in resource_type.references:
        if name not in values:
            continue
        led = _Led(resource_type, name, find_target)
        planned = led.lead(values[name], in_target.values.get(name, ()) if in_target else ())
        unsent |= led.unsent
        why |= led.why
        reason = led.reason or reason
        if not planned:
            del values[name]
            continue
        values[name] = planned if isinstance(values[name], list) else planned[0]
        if any(record.target_id is None for record in led.records):
            references[name] = PlannedReference(led.records, values[name])
            at_once |= {name: led.at_once} if led.goes_without else {}
    not_taken = {path.partition("[")[0] for path in unsent}
    lacking = {name for name in resource_type.required if name not in values and name not in form.empty}
    if reason is None and lacking:
        reason = REQUIRED_NOT_TAKEN if lacking <= not_taken else REQUIRED_MISSING
    unknown = not_taken.intersection((*resource_type.references, *resource_type.learned)) - values.keys()
    return MappedForm(values, references, at_once, unsent, why, frozenset(unknown), form.empty, reason, after)


class _Led:
    """The references of one field of a record, led to what they are in the target."""

    def __init__(self, resource_type: ResourceType, name: str, find_target: FindTarget) -> None:
        self._type, self._name, self._find_target = resource_type, name, find_target
        self._field, self.goes_without = resource_type.fields[name], name in resource_type.sent_without_references
        self.records = list[Referred]()
        """The records to which they lead, in their order."""
        self.unsent, self.why = dict[str, Any](), dict[str, str]()
        """As `MappedForm`."""
        self.reason: str | None = None
        self._left = 0
        """How many references lead nowhere."""
        self.at_once = list[dict[str, Any]]()
        """The objects without references to records that are still to be created."""

    def lead(self, value: Any, in_target: Any) -> list[Any]:
        """The value, or those of a list, as they are sent. `in_target`: what the target has."""
        return self._objects(value, in_target) if self.goes_without else self._entries(value)

    def _entries(self, value: Any) -> list[Any]:
        """Those that lead to a record."""
        many, planned = isinstance(value, list), list[Any]()
        for position, entry in enumerate(several(value)):
            led_to = list[Referred]()
            try:
                planned.append(self._field.with_ids(entry, partial(_led_to, self._find_target, led_to)))
            except _MissingRecordError as missing:
                code = self._leave(f"{self._name}[{position}]" if many else self._name, entry, missing.resource)
                is_needed = self._type.needs_references and code == LeftOut.NO_RECORD and not many
                if is_needed and not is_written_later(missing.resource, self._type.resource):
                    self.reason = AT_MISSING_LOCATION if missing.resource == LOCATIONS else REFERENCE_MISSING
            else:
                self.records += led_to
        return planned

    def _objects(
        self, forms: Sequence[Mapping[str, Any]], in_target: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """All of them, without references which lead nowhere: the target keeps what it has in place of these.

        None of them, where it is not clear in place of which: the target's whole list stays as it is.
        """
        planned, kept_by = list[dict[str, Any]](), _by_name(in_target)
        is_alone = Counter(map(_called, forms))
        for position, form in enumerate(forms):
            kept = kept_by.get(_called(form), {}) if is_alone[_called(form)] == 1 else {}
            members, first = dict[str, Any](), dict[str, Any]()
            for member, value in form.items():
                part, path = self._field.entries[member], f"{self._name}[{position}].{member}"
                led = self._with_kept(part, path, value, kept.get(member))
                known = None if led is None else part.with_ids(led, _known)
                members |= {} if led is None else {member: led}
                first |= {} if known is None else {member: known}
                if part.refers and known is None and member in kept:
                    first[member] = kept[member]
            planned.append(members)
            self.at_once.append(first)
        if self.unsent and self._ids(in_target) - self._ids(planned):
            self.unsent, self.why = {self._name: [*forms]}, {self._name: next(iter(self.why.values()))}
            return []
        for resource, number in self._field.led_to(planned):
            is_new = isinstance(number, dict)
            ids = (number["source"], None) if is_new else (number, number)
            self.records.append(Referred(resource, *ids))
        return planned

    def _with_kept(self, part: FieldMapping, path: str, value: Any, kept: Any) -> Any:
        """A value as it is sent; None if nothing is left of it. `kept`: what the target has in place of references that lead nowhere."""
        if not part.refers:
            return value
        if isinstance(value, list):
            led, lacking = list[Any](), list[Any]()
            for entry in value:
                before = self._left
                planned = self._with_kept(part, path, entry, None)
                (led if self._left == before else lacking).append(planned)
            if kept and lacking:
                return [*kept, *(entry for entry in led if entry not in kept)]
            return [*led, *(entry for entry in lacking if entry is not None)] or None
        if part.entries:
            above = kept or {}
            members = {name: self._with_kept(part.entries[name], path, value[name], above.get(name)) for name in value}
            return {name: member for name, member in members.items() if member is not None} or None
        planned = part.with_ids(value, partial(self._led_or_left, path))
        return kept if planned is None else planned

    def _ids(self, objects: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
        """The records to which objects lead, with their ids as texts."""
        return {(resource, str(number)) for resource, number in self._field.led_to([*objects])}

    def _led_or_left(self, path: str, resource: str, source_id: RecordId) -> Any:
        """As `_led_to`; None for a record that the target lacks, which is left out at this path."""
        try:
            return _led_to(self._find_target, [], resource, source_id)
        except _MissingRecordError as missing:
            self._left += 1
            earlier = self.unsent.get(path)
            self._leave(path, source_id if earlier is None else [*several(earlier), source_id], missing.resource)
            return None

    def _leave(self, path: str, value: Any, resource: str) -> str:
        """Note a value that is not sent, since the record that it leads to is missing; returns the code of the reason."""
        self.unsent[path], self.why[path] = value, _WHY_OF_KIND.get(resource, self._type.why_missing(self._name))
        return self.why[path]


def _called(form: Mapping[str, Any]) -> str:
    """The name and type of an object, as a text."""
    return f"{plain_text(form.get('name'))!r} {form.get('type')!r}"


def _by_name(in_target: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The objects of the target whose names no other of them has, by these."""
    times = Counter(map(_called, in_target))
    return {_called(form): form for form in in_target if times[_called(form)] == 1}


def _known(_resource: str, number: Any) -> Any:
    """The id of a record that the target has; None for `{"source": id}`."""
    return None if isinstance(number, dict) else number


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
            and not (referred == resource and precedes(number, source_id))
            for referred, number, target_id in reference.records
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
