"""Finds references to records of several resources, whose kind stands beside the id: `{"subject_type": "Location", "subject_id": 7}`.

Both are fields of the record, or members of an object, as in `[{"item_type": "Task", "item_id": 3}]` and
`{"data": {"type": "tasks", "id": "3"}}`. Where a word leads is certain only in JSON:API, or if several words are names of resources that
have the ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.migration.mapping.ids_in_values import MOST_VALUES, is_value
from pipelines.migration.model.field_mapping import OPEN, FieldMapping
from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.paths import DATA, objects_at
from pipelines.records.shapes.field_names import is_named_as_id, is_quantity, kind_beside, named_kind
from pipelines.records.shapes.observation import ANY_KEY, OTHERS, FieldShape, Kind, RecordShape
from pipelines.records.values import RecordId, record_id, text_of

DANGLING = 2
"""One in so many ids may be that of a record which is gone."""

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


class _Candidate(NamedTuple):
    """A field that may have ids, and the one with their kinds: members of the object at a path, or of the record."""

    holder: str
    name: str
    kind: str

    def path(self, member: str) -> str:
        return f"{self.holder}/{member}" if self.holder else member


def references_by_kind(
    records: Iterable[Mapping[str, Any]], shape: RecordShape, library: Mapping[str, RecordListing]
) -> dict[str, ReferenceByKind]:
    """Path of each field with references to records of several resources, and its form. `library`: every resource of the source."""
    candidates = [(candidate, IdsByKind()) for candidate in _candidates("", shape.fields)]
    for record in records if candidates else ():
        for candidate, by_kind in candidates:
            _note(by_kind, candidate, record)
    return {
        candidate.path(candidate.name): _led_to(candidate, by_kind, library)
        for candidate, by_kind in candidates
        if by_kind and (_is_named(candidate, by_kind) or len({*map(named_kind, by_kind)} - {None}) > 1)
    }


def _is_named(candidate: _Candidate, kinds: Iterable[str]) -> bool:
    """Whether the names say that one has the kind of the other, as `item_type` and `item_id` do; `type` and `id` in JSON:API."""
    if _is_data(candidate.holder):
        return all(map(named_kind, filter(None, kinds)))
    return not candidate.holder or kind_beside(candidate.name, [candidate.kind]) == candidate.kind


def _is_data(path: str) -> bool:
    return path.rpartition("/")[2] == DATA


def _candidates(holder: str, fields: Mapping[str, FieldShape]) -> Iterator[_Candidate]:
    """Yield each field that may have an id with its kind beside it, at any depth."""
    words = [name for name, field in fields.items() if is_word(field)]
    for name, field in fields.items():
        path = f"{holder}/{name}" if holder else name
        if holder:
            is_id = field.may_be_ids and Kind.LIST not in field.kinds
        else:
            is_id = is_named_as_id(name) or (field.may_be_ids and not is_quantity(name))
        kind = kind_beside(name, words, in_object=bool(holder))
        if kind and field.kinds and is_id:
            yield _Candidate(holder, name, kind)
        elif (objects := objects_in(field)) is not None:
            yield from _candidates(path, objects.members)


def is_word(field: FieldShape) -> bool:
    """Whether a field may have the kind of a record: neither objects nor lists are one."""
    return {Kind.OBJECT, Kind.LIST}.isdisjoint(field.kinds)


def objects_in(field: FieldShape) -> FieldShape | None:
    """The objects of a field that has nothing else, or those of its lists; None where keys are values, or too many to be known."""
    objects = field.entries if {*field.kinds} == {Kind.LIST} else field
    if objects is None or {*objects.kinds} != {Kind.OBJECT}:
        return None
    keys = {name for name in objects.members if name in (ANY_KEY, OTHERS) or is_value(name)}
    return None if any(not _is_label(name, objects) for name in keys) else objects


FEWEST_OBJECTS = 3
"""Objects of which more than half have a key of several words, from which is concluded that it is the name of a field."""


def _is_label(key: str, objects: FieldShape) -> bool:
    """Whether a key of several words is the name of a field, as people name fields of their own: `Call Number`, and no person (I10)."""
    count = objects.kinds[Kind.OBJECT]
    is_of_words = " " in key and not re.search("[0-9]", key)
    return is_of_words and count >= FEWEST_OBJECTS and objects.members[key].seen * 2 > count


def _note(by_kind: IdsByKind, candidate: _Candidate, record: Mapping[str, Any]) -> None:
    """Add the ids of a record by their kinds; a number of a record without a word has none."""
    for holder in objects_at(record, candidate.holder):
        if (number := record_id(holder.get(candidate.name))) is not None and len(by_kind) <= MOST_KINDS:
            ids = by_kind.setdefault(text_of(holder.get(candidate.kind)) or "", set())
            if len(ids) < MOST_VALUES:
                ids.add(number)


def _led_to(candidate: _Candidate, by_kind: IdsByKind, library: Mapping[str, RecordListing]) -> ReferenceByKind:
    """Each kind leads to the resource that it names and whose ids it has; it is a question where that is not certain."""
    words = [word for word in sorted(by_kind) if word]
    if not 0 < len(words) <= MOST_KINDS or any(
        map(str.isdigit, words)
    ):  # a kind that is a number has its own in each library
        return NO_FORM
    owners = _owners(by_kind, library)
    named = {word: resource for word in words if (resource := named_kind(word)) in owners.get(word, ())}
    is_certain = _is_data(candidate.holder) or len({*named.values()}) > 1
    kinds = {word: (named.get(word) if is_certain else None) or OPEN for word in words}
    return ReferenceByKind(FieldMapping(kind=candidate.path(candidate.kind), kinds=kinds), owners)


def _owners(by_kind: IdsByKind, library: Mapping[str, RecordListing]) -> dict[str, list[str]]:
    """Kind → the resources that have its ids, but for those of records that are gone."""
    owners = dict[str, list[str]]()
    for resource, listing in library.items():
        dangling = {kind: {*ids} for kind, ids in by_kind.items()}
        for known in listing.ids():
            for ids in dangling.values():
                ids.difference_update(known)
        for kind, ids in dangling.items():
            if len(ids) * DANGLING <= len(by_kind[kind]):
                owners.setdefault(kind, []).append(resource)
    return owners
