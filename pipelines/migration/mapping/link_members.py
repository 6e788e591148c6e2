"""Finds what the objects of a reference say of the link, such as a role: it is lost where only the id is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipelines.migration.model.field_mapping import OPEN, id_of, several
from pipelines.migration.model.resource_types import OF_EACH_OBJECT, ResourceType
from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.shapes.observation import ANY_KEY, OTHERS, RecordShape
from pipelines.records.values import RecordId, compact_json, record_id

FEWEST_REPETITIONS = 3
"""Objects with an id that came before, from which is concluded that a member belongs to the record with that id."""

MOST_IDS = 300
"""Ids of a field whose members are compared."""


class _Values:
    """The values of one member of a reference's objects."""

    def __init__(self) -> None:
        self._by_id = dict[RecordId, str]()
        self._repetitions, self._varies = 0, False
        self._compared, self._copied = set[RecordId](), set[RecordId]()
        """Ids of records that are there, and of those that have such a value themselves."""

    def add(self, number: RecordId, value: Any) -> None:
        text = compact_json(value)
        if number in self._by_id:
            self._repetitions += 1
            self._varies |= self._by_id[number] != text
        elif len(self._by_id) < MOST_IDS:
            self._by_id[number] = text

    def compare(self, number: RecordId, name: str, record: Mapping[str, Any]) -> None:
        """Note whether the record with this id has the value itself, under this name, or of a text under any."""
        if (text := self._by_id.get(number)) is not None:
            own = record.values() if text.startswith('"') else (record.get(name),)
            self._compared.add(number)
            self._copied.update({number} if text in map(compact_json, own) else ())

    @property
    def belong_to_record(self) -> bool:
        """Whether all are those of the records; of records that are not there, whether they go with the id, and differ, as names do."""
        if self._compared:
            return self._copied == self._compared
        is_name = len({*self._by_id.values()}) * 2 > len(self._by_id)
        return is_name and not self._varies and self._repetitions >= FEWEST_REPETITIONS


def members_of_links(
    records: Iterable[Mapping[str, Any]], learned: ResourceType, shape: RecordShape, read: Mapping[str, RecordListing]
) -> dict[str, list[str]]:
    """Key of a reference → the members of its objects that tell of the link rather than of the record to which it leads.

    As long as it is open where it leads, all may. `read`: the resources of the source that are read.
    """
    values = {key: {member: _Values() for member in members} for key, members in _candidates(shape)}
    for record in records if values else ():
        for key, by_member in values.items():
            for entry in several(record.get(key)):
                if isinstance(entry, dict) and (number := id_of(entry)) is not None:
                    for member in by_member.keys() & {name for name, value in entry.items() if value is not None}:
                        by_member[member].add(number, entry[member])
    leads_to = {key: part.leads_to for path, part in learned.parts.items() for key in part.keys_of(path)}
    for resource, listing in read.items():
        led_there = [by_member for key, by_member in values.items() if leads_to.get(key) == resource]
        for record in listing.records() if led_there else ():
            number = record_id(record.get("id"))
            for member, known in (item for by_member in led_there for item in by_member.items()):
                if number is not None:
                    known.compare(number, member, record)
    links = {
        key: [member for member, known in by_member.items() if leads_to.get(key) == OPEN or not known.belong_to_record]
        for key, by_member in values.items()
    }
    return {key: members for key, members in links.items() if members}


def _candidates(shape: RecordShape) -> Iterator[tuple[str, list[str]]]:
    """Yield the key of each field whose objects have ids, and their other members."""
    for key, field in shape.fields.items():
        names = field.members.keys() | field.entries.members.keys() if field.entries else field.members.keys()
        if field.has_ids and (members := names - {OTHERS, ANY_KEY, *OF_EACH_OBJECT}):
            yield key, sorted(members)
