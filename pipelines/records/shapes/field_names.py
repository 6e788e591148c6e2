"""What the name of a field says: whether a client sends it, and of a reference, where it leads and which other names it may have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelines.records.additional_fields import is_managed
from pipelines.records.residue import PICTURES
from pipelines.records.shapes.observation import OTHERS, FieldShape, RecordShape

_NAMED_AFTER = {
    **dict.fromkeys(("publication", "book"), "publications"),
    **dict.fromkeys(("location",), "locations"),
    **dict.fromkeys(("collection",), "collections"),
    **dict.fromkeys(("authority",), "authorities"),
    **dict.fromkeys(("copy", "hard_copy"), "hard_copies"),
    **dict.fromkeys(("task",), "tasks"),
    **dict.fromkeys(
        ("user", "assignee", "owner", "creator", "borrower", "reviewer", "librarian", "contributor", "assigned_to"),
        "users",
    ),
}
"""Last word of a field's name → the resource whose records it names."""


_OF_ITS_OWN_KIND = frozenset(
    {"parent", "ancestor", "child", "children", "broader", "narrower", "superior", "predecessor", "successor"}
)
"""Words in the name of a field with other records of its own resource."""


def fields_to_send(shape: RecordShape) -> dict[str, FieldShape]:
    """The fields of records that a client may send: neither filled by the service nor pictures."""
    return {
        name: field
        for name, field in shape.fields.items()
        if name != OTHERS and not is_managed(name) and name not in PICTURES
    }


def keys_of(name: str) -> Iterator[str]:
    """The keys under which a record may have a field of a payload: `location_id` may be read as `location`, and the other way round."""
    yield name
    if name.endswith("_ids"):
        yield from (f"{name[:-4]}s", re.sub("ys$", "ies", f"{name[:-4]}s"), name[:-4])
    elif name.endswith("_id"):
        yield name[:-3]
    else:
        yield f"{name}_id"
        yield f"{_singular(name)}_ids"


def names_own_kind(stem: str) -> bool:
    """Whether a reference of this name leads to a record of the resource that has it."""
    return not _OF_ITS_OWN_KIND.isdisjoint(stem.split("_"))


def may_be_count(name: str) -> bool:
    """Whether a whole number in a field of this name may count records instead of naming one: `copies` has no `_id`."""
    return name == stem_of(name) and _singular(name) != name


def stem_of(name: str) -> str:
    """The name of a reference without `_id` or `_ids`."""
    return re.sub(r"_ids?$", "", name)


def _singular(name: str) -> str:
    return re.sub("s$", "", re.sub("ies$", "y", name))


def resource_named(stem: str) -> str | None:
    """The resource that a reference of this name leads to: by its last word or two."""
    words = stem.split("_")
    for count in (2, 1):
        found = _NAMED_AFTER.get(_singular("_".join(words[-count:])))
        if found is not None:
            return found
    return None
