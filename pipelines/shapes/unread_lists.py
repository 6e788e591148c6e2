"""The lists of a service that no backup reads: which of them may have what its records do not have (service.md#not-shown).

The service has addresses of their own for nested records, and the document shows none of them. What a description shows is read from it;
which publications a collection has must be somewhere, also where there is no description.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pipelines.inventory import LIST_PATHS, noun, plural
from pipelines.records.additional_fields import is_managed
from pipelines.records.shapes.field_names import kind_beside, names_same, resource_named, stem_of
from pipelines.records.shapes.observation import Kind, RecordShape
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
    described = description or Description(address="")
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


_ASSETS = "assets"
"""Files, which the document shows in their publications."""

_OF_ROWS = frozenset({"_links", "id", "links", "meta"})
"""What rows of any list may have, and what says nothing of a record."""


def _is_unread(
    path: str, description: Description, shapes: Mapping[str, RecordShape], left_out: Collection[str]
) -> bool:
    if path in _RESOURCES or path in _READ_OTHERWISE:
        return _RESOURCES.get(path) in left_out
    root, _, below = path.partition("/{}/")
    resource = _RESOURCES.get(root)
    if below:
        if resource is None or "/" in below:
            return resource is not None
        record = description.resources.get(resource_named(below) or "", ResourceSchema()).record
        rows = {
            row for row in description.lists[path] if row not in record and row not in _OF_ROWS and not is_managed(row)
        }
        return not _has_members(resource, below, shapes, () if below == _ASSETS else rows)
    above = _RESOURCES.get(path.rpartition("/")[0])
    fields = description.lists[path]
    # A part of a known list, such as its newest records
    return above is None or (
        bool(fields) and fields != sorted(description.resources.get(above, ResourceSchema()).record)
    )


def _has_members(resource: str, name: str, shapes: Mapping[str, RecordShape], rows: Collection[str] = ()) -> bool:
    """Whether records show what belongs to each record of a resource, on either side; also where there is nothing to show.

    `name`: of what belongs to it: that of a resource, or of anything else. `rows`: what its list says besides links, such as a position.
    """
    shape, other = shapes.get(resource, RecordShape()), shapes.get(name)
    if not shape.records or (other is not None and not other.records):
        return True
    shown, has_list = set[str](), False
    for path, field in shape.paths():
        members = field.entries.members if field.entries is not None else {}
        is_list = Kind.LIST in field.kinds and _is_named(path, name)
        has_links = any(_is_named((member,), name) for member in members)  # `items: [{publication_id: 7}]`
        if any(kind_beside(member, members, in_object=True) for member in members):  # `[{type: "publication", id: 7}]`
            return True
        if is_list or has_links:
            has_list, shown = True, shown.union(members)
            shown |= _links(rows, resource, name) if has_links or not members or "id" in members else set()
    if has_list:
        return shown.issuperset(rows)
    return other is not None and any(field.kinds and _is_named(path, resource) for path, field in other.paths())


def _links(rows: Collection[str], resource: str, name: str) -> set[str]:
    """Those members of the rows of a list that say which records belong together."""
    resource_of_row = {row: called for row in rows if (called := resource_named(stem_of(row))) is not None}
    referred = {*resource_of_row.values()} - {resource}
    ends = {resource, resource_named(name)} | (referred if len(referred) == 1 else set())
    return {row for row, called in resource_of_row.items() if called in ends}


def _is_named(path: Sequence[str], name: str) -> bool:
    """Whether a field is named after a resource or a list; in JSON:API the one that has it as `data`."""
    *above, last = path
    stem = stem_of(above[-1] if last == "data" and above else last)
    return names_same(stem, name) or resource_named(stem) == name
