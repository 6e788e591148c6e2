"""Finds fields whose whole numbers are all ids of the records of one resource, whatever their names: they may refer to it.

The service does not document such fields (service.md#not-shown). Numbers of the source are other records in the target, so that a field
that may refer to records is not sent as it stands. Nothing is concluded from it: where the field leads is a question to a person.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pipelines.migration.model.target_reading import TargetListing
from pipelines.records.shapes.field_names import is_quantity

MOST_VALUES = 10_000
"""Different numbers of a field that are compared."""

SMALL = 100
"""Ids that any resource may have."""

Path = tuple[str, ...]


def fields_with_ids(
    records: Iterable[Mapping[str, Any]], names: Collection[str], listings: Mapping[str, TargetListing]
) -> dict[str, str]:
    """Field → the resource whose ids are all of its numbers, at any depth. `listings`: every resource of the same library.

    Numbers that are ids of several resources, as those from 1 on are, say nothing unless they stand in a list: a position, a rank and
    a choice have them. Of a library that lists one resource only, those up to `SMALL` are taken for such ids. Nor do numbers of fields
    that are named after a quantity.
    """
    values: dict[Path, set[int] | None] = {}
    listed = set[Path]()
    for record in records:
        for name in names:
            for path, number, is_listed in _numbers((name,), record.get(name)):
                _add(values, path, number)
                if is_listed:
                    listed.add(path)
    found = {path: [*numbers] for path, numbers in values.items() if numbers}
    owners: dict[Path, list[str]] = {path: [] for path in found}
    for resource, listing in listings.items() if found else ():
        left = {path: {*numbers} for path, numbers in found.items()}
        for ids in listing.ids():
            for numbers in left.values():
                numbers.difference_update(ids)
        for path, numbers in left.items():
            if not numbers:
                owners[path].append(resource)
    return {
        path[0]: resources[0]
        for path, resources in owners.items()
        if resources and (path in listed or (len(resources) == 1 and (len(listings) > 1 or max(found[path]) > SMALL)))
    }


def _numbers(path: Path, value: object, *, is_listed: bool = False) -> Iterator[tuple[Path, int | None, bool]]:
    """Yield the path of each value that is no object and no list, the value where it may be an id, and whether it stands in a list."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _numbers((*path, name), member)
    elif isinstance(value, list):
        for entry in value:
            yield from _numbers(path, entry, is_listed=True)
    elif value is not None and not is_quantity(path[-1]):
        yield path, value if type(value) is int and value > 0 else None, is_listed


def _add(values: dict[Path, set[int] | None], path: Path, number: int | None) -> None:
    known = values.setdefault(path, set())
    if number is None:
        values[path] = None
    elif known is not None and len(known) < MOST_VALUES:
        known.add(number)
