"""Finds fields that may refer to records by their values, whatever their names: numbers that are all ids, and addresses of records.

The service does not document such fields (service.md#not-shown). Numbers of the source are other records in the target, so that a field
that may refer to records is not sent as it stands. Nothing is concluded from it: where the field leads is a question to a person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from pipelines.inventory import LIST_PATHS
from pipelines.migration.model.target_reading import TargetListing
from pipelines.records.shapes.field_names import is_quantity

MOST_VALUES = 10_000
"""Different numbers of a field that are compared."""

SMALL = 100
"""Ids that any resource may have."""

FEW = 2
"""As many different numbers a switch has, or a choice."""

_ADDRESS = re.compile(
    rf"(?:(?:https?:)?//?\S*/api/v[0-9]+/|/?(?:api/v[0-9]+/)?)(?P<path>{'|'.join(LIST_PATHS.values())})"
    r"/[^/?#\s]*[0-9][^/?#\s]*(?:[/?#]\S*)?",
    re.IGNORECASE,
)
"""Matches the address of a record in the API, with or without the library's own: `/publications/3`, `https://library/api/v2/users/7`."""

_RESOURCES = {path: resource for resource, path in LIST_PATHS.items()}

Path = tuple[str, ...]


def fields_with_ids(
    records: Iterable[Mapping[str, Any]], names: Collection[str], listings: Mapping[str, TargetListing]
) -> dict[str, str]:
    """Field → the resource whose ids are all of its numbers, or whose record any of its texts is the address of, at any depth.

    `listings`: every resource of the same library. Up to `FEW` different numbers that are ids of several resources, as those from 1 on are,
    say nothing unless they stand in a list. Of a library that lists one resource only, those up to `SMALL` are taken for such ids. Nor do
    numbers of fields that are named after a quantity or a choice.
    """
    values: dict[Path, set[int] | None] = {}
    listed, addressed = set[Path](), dict[str, str]()
    for record in records:
        for name in names:
            for path, value, is_listed in _values((name,), record.get(name)):
                if not is_quantity(path[-1]):
                    _add(values, path, value if type(value) is int and value > 0 else None)
                if is_listed:
                    listed.add(path)
                if name not in addressed and isinstance(value, str) and (address := _ADDRESS.fullmatch(value)):
                    addressed[name] = _RESOURCES[address["path"].lower()]
    found = {path: numbers for path, numbers in values.items() if numbers}
    return addressed | {
        path[0]: resources[0]
        for path, resources in _owners(found, listings).items()
        if path in listed
        or len(found[path]) > FEW
        or (len(resources) == 1 and (len(listings) > 1 or max(found[path]) > SMALL))
    }


def _owners(found: Mapping[Path, AbstractSet[int]], listings: Mapping[str, TargetListing]) -> dict[Path, list[str]]:
    """The resources that have all of some numbers as their ids."""
    owners: dict[Path, list[str]] = {}
    for resource, listing in listings.items() if found else ():
        left = {path: {*numbers} for path, numbers in found.items()}
        for ids in listing.ids():
            for numbers in left.values():
                numbers.difference_update(ids)
        for path, numbers in left.items():
            if not numbers:
                owners.setdefault(path, []).append(resource)
    return owners


def _values(path: Path, value: object, *, is_listed: bool = False) -> Iterator[tuple[Path, object, bool]]:
    """Yield the path of each value that is no object and no list, the value, and whether it stands in a list."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _values((*path, name), member)
    elif isinstance(value, list):
        for entry in value:
            yield from _values(path, entry, is_listed=True)
    elif value is not None:
        yield path, value, is_listed


def _add(values: dict[Path, set[int] | None], path: Path, number: int | None) -> None:
    known = values.setdefault(path, set())
    if number is None:
        values[path] = None
    elif known is not None and len(known) < MOST_VALUES:
        known.add(number)
