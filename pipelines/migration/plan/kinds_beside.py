"""Finds references to records of several resources, whose kind stands beside the id: `{"subject_type": "Location", "subject_id": 7}`.

The kind may be another field of the record, or stand in the object that has the id, as in `[{"item_type": "Task", "item_id": 3}]` and
`{"data": {"type": "tasks", "id": "3"}}`. Where a word leads is certain only in JSON:API, or if several words are names of resources that
have the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from pipelines.migration.model.field_mapping import OPEN, FieldMapping, several
from pipelines.migration.model.target_reading import TargetListing
from pipelines.migration.plan.numbers import MOST_VALUES, resources_with
from pipelines.records.shapes.field_names import is_named_as_id, is_quantity, kind_beside, named_kind
from pipelines.records.shapes.observation import FieldShape, Kind, RecordShape
from pipelines.records.values import RecordId
from pipelines.shapes.model import FieldSchema

DATA = "data"

MOST_KINDS = 20
"""Words beside the ids of a field; more are texts, and no kinds."""

IdsByKind = dict[str, set[RecordId]]


class ReferenceByKind(NamedTuple):
    """A field with references to records of several resources."""

    form: FieldMapping | None
    """None where no mapping can have it; a kind of which is not known where it leads is a question."""
    owners: Mapping[str, Sequence[str]]
    """Kind → the resources that have its ids."""


NO_FORM = ReferenceByKind(None, {})


def references_by_kind(
    records: Iterable[Mapping[str, Any]], shape: RecordShape, library: Mapping[str, TargetListing]
) -> dict[str, ReferenceByKind]:
    """Key of each field with references to records of several resources, and its form. `library`: every resource of the source."""
    candidates = [
        (name, form, IdsByKind()) for name, field in shape.fields.items() for form in _forms(name, field, shape.fields)
    ]
    kinds_at_any_depth: dict[str, set[str]] = {name: set() for name, field in shape.fields.items() if _has_kind(field)}
    for record in records if candidates or kinds_at_any_depth else ():
        for name, resources in kinds_at_any_depth.items():
            resources.update(_kinds(record.get(name)))
        for name, form, by_kind in candidates:
            _note(by_kind, form, name, record)
    led = dict[str, list[ReferenceByKind]]()
    for name, form, by_kind in candidates:
        if by_kind and (_is_named(form, by_kind) or len({*map(named_kind, by_kind)} - {None}) > 1):
            led.setdefault(name, []).append(_led_to(form, by_kind, library))
    several_kinds = {name for name, resources in kinds_at_any_depth.items() if len(resources) > 1}
    return dict.fromkeys(several_kinds, NO_FORM) | {
        name: references[0] if len(references) == 1 else NO_FORM for name, references in led.items()
    }


def _is_named(form: FieldMapping, kinds: Iterable[str]) -> bool:
    """Whether the names say that one has the kind of the other, as `item_type` and `item_id` do; `type` and `id` in JSON:API."""
    if form.within:
        return all(map(named_kind, filter(None, kinds)))
    return form.is_pair or kind_beside(form.inside[-1], [form.kind]) == form.kind


def _forms(name: str, field: FieldShape, fields: Mapping[str, FieldShape]) -> Iterator[FieldMapping]:
    """Yield each place in a field that may have an id with its kind."""
    if is_named_as_id(name) or (field.may_be_ids and not is_quantity(name)):
        kind = kind_beside(name, fields)
        if kind and field.kinds:
            yield FieldMapping(kind=kind)
    within, field, _described = unwrapped(field)
    is_list = {*field.kinds} == {Kind.LIST} and field.entries is not None
    holder = field.entries if is_list and field.entries is not None else field
    if {*holder.kinds} == {Kind.OBJECT}:
        for inside, kind in _within((), holder.members):
            yield FieldMapping(many=is_list, within=within, inside=inside, kind=kind)


def unwrapped(field: FieldShape, described: FieldSchema | None = None) -> tuple[str, FieldShape, FieldSchema | None]:
    """The member that has what a field refers to, where its objects have nothing else, as in JSON:API; its shape, and its description.

    A description that lacks the member describes what it has.
    """
    if {*field.kinds} != {Kind.OBJECT} or {*field.members} - {"links", "meta"} != {DATA}:
        return "", field, described
    return DATA, field.members[DATA], described and described.members.get(DATA, described)


def _within(above: tuple[str, ...], members: Mapping[str, FieldShape]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path to each id in an object, at any depth, and the name of its kind beside it."""
    for name, field in members.items():
        kind = kind_beside(name, members, in_object=True)
        if kind and field.kinds and field.may_be_ids and Kind.LIST not in field.kinds:
            yield (*above, name), kind
        elif {*field.kinds} == {Kind.OBJECT}:
            yield from _within((*above, name), field.members)


def _note(by_kind: IdsByKind, form: FieldMapping, name: str, record: Mapping[str, Any]) -> None:
    """Add the ids of a record by their kinds; a number of a record without a word has none."""
    for entry in several(form.read(record, name)):
        if (number := form.id_of(entry)) is not None and len(by_kind) <= MOST_KINDS:
            ids = by_kind.setdefault(form.kind_of(entry), set())
            if len(ids) < MOST_VALUES:
                ids.add(number)


def _led_to(form: FieldMapping, by_kind: IdsByKind, library: Mapping[str, TargetListing]) -> ReferenceByKind:
    """Each kind leads to the resource that it names and whose ids it has; it is a question where that is not certain."""
    words = [word for word in sorted(by_kind) if word]
    if not 0 < len(words) <= MOST_KINDS:
        return NO_FORM
    owners = resources_with(by_kind, library)
    named = {word: resource for word in words if (resource := named_kind(word)) in owners.get(word, ())}
    is_certain = bool(form.within) or len({*named.values()}) > 1
    kinds = {word: (named.get(word) if is_certain else None) or OPEN for word in words}
    return ReferenceByKind(replace(form, kinds=kinds), owners)


def _has_kind(field: FieldShape) -> bool:
    members = field.members or (field.entries.members if field.entries else {})
    return {"id", "type"} <= members.keys() or any(map(_has_kind, members.values()))


def _kinds(value: Any) -> Iterator[str]:
    """Yield the resources that objects with an id name as their kinds, at any depth."""
    if isinstance(value, dict):
        if "id" in value and (kind := named_kind(value.get("type"))):
            yield kind
        value = [*value.values()]
    for member in value if isinstance(value, list) else ():
        yield from _kinds(member)
