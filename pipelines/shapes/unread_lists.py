"""The lists of a service that no backup reads: which of them may have what its records do not have (service.md#not-shown).

The service has addresses of their own for nested records, and the document shows none of them. What a description shows is read from it;
which publications a collection has must be somewhere, also where there is no description.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pipelines.inventory import LIST_PATHS, noun, plural
from pipelines.records.shapes.field_names import kind_beside, names_same, resource_named, stem_of
from pipelines.records.shapes.observation import FieldShape, Kind, RecordShape
from pipelines.shapes.model import Description, ResourceSchema

MEMBERS = "/collections/:id/publications"
"""What is not read where neither records nor a description show it."""

_RESOURCES = {f"/{path}": resource for resource, path in LIST_PATHS.items()}

_READ_OTHERWISE = frozenset({"/assets", "/publications/all"})
"""Documented lists of files, which publications have, and of all publications."""


def unread_lists(
    description: Description | None,
    shapes: Mapping[str, RecordShape],
    left_out: Collection[str] = (),
    read: Collection[str] = (),
) -> list[str]:
    """What is not read of a service: addresses such as `/collections/:id/publications`.

    `shapes`: of the records that were read. `left_out`: resources that were not asked for, because this version does not document them;
    `read`: such addresses that were read.
    """
    described = description or Description(address="", learned_at="")
    paths = sorted(path for path in described.lists if _is_unread(path, described, shapes, left_out))
    if not any(path.startswith("/collections/") for path in (*paths, *read)) and not _has_members(
        "collections", "publications", shapes
    ):
        paths.append(MEMBERS)
    return [address for path in paths if (address := path.replace("{}", ":id")) not in read]


def list_in_words(address: str) -> str:
    """A list of each record in words, such as `the publications of each collection`; any other list stays an address."""
    root, _, below = address.partition("/:id/")
    resource = _RESOURCES.get(root)
    return f"the {plural(below)} of each {noun(resource)}" if resource and below.isidentifier() else address


def _is_unread(
    path: str, description: Description, shapes: Mapping[str, RecordShape], left_out: Collection[str]
) -> bool:
    if path in _RESOURCES or path in _READ_OTHERWISE:
        return _RESOURCES.get(path) in left_out
    root, _, below = path.partition("/{}/")
    resource = _RESOURCES.get(root)
    if below:
        return resource is not None and not ("/" not in below and _has_members(resource, below, shapes))
    above = _RESOURCES.get(path.rpartition("/")[0])
    fields = description.lists[path]
    # A part of a known list, such as its newest records
    return above is None or (
        bool(fields) and fields != sorted(description.resources.get(above, ResourceSchema()).record)
    )


def _has_members(resource: str, name: str, shapes: Mapping[str, RecordShape]) -> bool:
    """Whether records show what belongs to each record of a resource, on either side; also where there is nothing to show.

    `name`: of what belongs to it: that of a resource, or of anything else.
    """
    shape, other = shapes.get(resource, RecordShape()), shapes.get(name)
    if not shape.records or (other is not None and not other.records):
        return True
    if any(Kind.LIST in holder.kinds for field in _named(shape.fields, name) for holder in (field, *_data_of(field))):
        return True
    for members in (field.entries.members for field in shape.fields.values() if field.entries is not None):
        if any(_named(members, name)):  # `items: [{publication_id: 7}]`
            return True
        if any(kind_beside(member, members, in_object=True) for member in members):  # `[{type: "publication", id: 7}]`
            return True
    return other is not None and any(field.kinds for field in _named(other.fields, resource))


def _data_of(field: FieldShape) -> Iterator[FieldShape]:
    """Yield what a member `data` has, as in JSON:API."""
    if "data" in field.members:
        yield field.members["data"]


def _named(fields: Mapping[str, FieldShape], name: str) -> Iterator[FieldShape]:
    """Yield the fields that are named after a resource or a list."""
    for key, field in fields.items():
        stem = stem_of(key)
        if names_same(stem, name) or resource_named(stem) == name:
            yield field
