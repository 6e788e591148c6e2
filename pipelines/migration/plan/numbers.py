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

    `listings`: every resource of the same library. Numbers of fields that are named after a quantity or a choice say nothing.
    """
    values: dict[Path, set[int] | None] = {}
    addressed = dict[str, str]()
    for record in records:
        for name in names:
            for path, value in _values((name,), record.get(name)):
                if not is_quantity(path[-1]):
                    _add(values, path, value if type(value) is int and value > 0 else None)
                if name not in addressed and isinstance(value, str) and (address := _ADDRESS.fullmatch(value)):
                    addressed[name] = _RESOURCES[address["path"].lower()]
    return addressed | _owners({path: numbers for path, numbers in values.items() if numbers}, listings)


def _owners(found: Mapping[Path, AbstractSet[int]], listings: Mapping[str, TargetListing]) -> dict[str, str]:
    """Field → the first resource that has all of the numbers of a path in it as its ids."""
    owners: dict[str, str] = {}
    for resource, listing in listings.items() if found else ():
        left = {path: {*numbers} for path, numbers in found.items()}
        for ids in listing.ids():
            for numbers in left.values():
                numbers.difference_update(ids)
        for path, numbers in left.items():
            if not numbers:
                owners.setdefault(path[0], resource)
    return owners


def _values(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    """Yield the path of each value that is no object and no list, and the value."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _values((*path, name), member)
    elif isinstance(value, list):
        for entry in value:
            yield from _values(path, entry)
    elif value is not None:
        yield path, value


def _add(values: dict[Path, set[int] | None], path: Path, number: int | None) -> None:
    known = values.setdefault(path, set())
    if number is None:
        values[path] = None
    elif known is not None and len(known) < MOST_VALUES:
        known.add(number)
