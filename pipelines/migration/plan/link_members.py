"""Finds what the objects of a reference say of the link, such as a role: it is lost where only the id is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pipelines.migration.model.field_mapping import id_of, several
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.additional_fields import is_managed
from pipelines.records.shapes.observation import ANY_KEY, OTHERS, RecordShape
from pipelines.records.values import RecordId, compact_json

FEWEST_REPETITIONS = 3
"""Objects with an id that came before, from which is concluded that a member belongs to the record with that id."""

MOST_IDS = 300
"""Ids of a field whose members are compared, and records that are looked at for their fields."""


class _Values:
    """The values of one member of a reference's objects."""

    def __init__(self) -> None:
        self._by_id = dict[RecordId, str]()
        self._repetitions, self._varies = 0, False

    def add(self, number: RecordId, value: Any) -> None:
        text = compact_json(value)
        if number in self._by_id:
            self._repetitions += 1
            self._varies |= self._by_id[number] != text
        elif len(self._by_id) < MOST_IDS:
            self._by_id[number] = text

    @property
    def belong_to_record(self) -> bool:
        """Whether they go with the id, and differ between ids, as names do."""
        is_name = len({*self._by_id.values()}) * 2 > len(self._by_id)
        return is_name and not self._varies and self._repetitions >= FEWEST_REPETITIONS


def members_of_links(
    records: Iterable[Mapping[str, Any]], learned: ResourceType, shape: RecordShape, read: Mapping[str, RecordListing]
) -> dict[str, list[str]]:
    """Key of a reference → the members of its objects that tell of the link rather than of the record to which it leads.

    That record has a member if records of its resource have a field of this name, or if the values say so. `read`: the resources of the
    source that are read.
    """
    values: dict[str, dict[str, _Values]] = {
        key: {member: _Values() for member in members} for key, members in _candidates(learned, shape, read)
    }
    for record in records if values else ():
        for key, by_member in values.items():
            for entry in several(record.get(key)):
                if isinstance(entry, dict) and (number := id_of(entry)) is not None:
                    for member, known in by_member.items():
                        known.add(number, entry.get(member))
    links = {
        key: [member for member, known in by_member.items() if not known.belong_to_record]
        for key, by_member in values.items()
    }
    return {key: members for key, members in links.items() if members}


def _candidates(
    learned: ResourceType, shape: RecordShape, read: Mapping[str, RecordListing]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the key of each reference with objects, and their members that are no fields of the record to which it leads."""
    references = {key: part.leads_to for path, part in learned.parts.items() for key in part.keys_of(path)}
    for key, field in shape.fields.items():
        if not field.has_ids:
            continue
        ways = {"type", OTHERS, ANY_KEY}
        members = {member for member in (field.entries or field).members.keys() - ways if not is_managed(member)}
        listing = read.get(references.get(key, "")) if members else None
        members.difference_update(*(islice(listing.records(), MOST_IDS) if listing else ()))
        if members:
            yield key, sorted(members)
