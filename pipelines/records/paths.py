"""Members of objects as fields of the record: each has the path through the objects as its name, such as `holding/location_id`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import accumulate
from typing import Any, TypeVar

Value = TypeVar("Value")

ATTRIBUTES = "attributes"
"""The member of JSON:API that has the fields of a record."""

RELATIONSHIPS = "relationships"
"""The member of JSON:API that has the references of a record."""

DATA = "data"
"""The member of JSON:API that has what a field refers to."""


def value_at(record: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """The value at a path; `default` where the record has none."""
    name, _, rest = path.partition("/")
    if path in record or not rest:
        return record.get(path, default)
    holder = record.get(name)
    return value_at(holder, rest, default) if isinstance(holder, dict) else default


def nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The object that has these values at these paths. An object without any is null, as a reference to nothing is."""
    whole = dict[str, Any]()
    holders = {path.rpartition("/")[0] for path in fields} - {""}
    empty = {holder for holder in holders if not (_has_value(holder, fields) or holder.endswith(ATTRIBUTES))}
    given = {path: value for path, value in fields.items() if path.rpartition("/")[0] not in empty}
    for path, value in (dict.fromkeys(empty) | given).items():
        *above, last = path.split("/")
        holder = whole
        for name in above:
            if not isinstance(holder.get(name), dict):
                holder[name] = {}
            holder = holder[name]
        holder[last] = value
    return whole


def as_part(name: str) -> str:
    """A name of a record as a part of a path. No field of such a name with a slash is read at a path; it is only named."""
    return name.replace("/", "~1")


def objects_of(paths: Iterable[str]) -> set[str]:
    """The paths of the objects that have these members."""
    return {above for path in paths for above in accumulate(path.split("/")[:-1], "{}/{}".format)}


def _has_value(holder: str, fields: Mapping[str, Any]) -> bool:
    return any(value is not None for path, value in fields.items() if path.startswith(f"{holder}/"))


def objects_at(record: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    """The objects at a path through objects and lists of objects; the record itself at an empty one."""
    objects = [dict(record)]
    for name in path.split("/") if path else ():
        values = [holder.get(name) for holder in objects]
        entries = (entry for value in values for entry in (value if isinstance(value, list) else [value]))
        objects = [entry for entry in entries if isinstance(entry, dict)]
    return objects


def within(holder: str, by_path: Mapping[str, Value]) -> dict[str, Value]:
    """What is known by paths, of those within an object: path below it → that."""
    beginning = f"{holder}/"
    return {path.removeprefix(beginning): value for path, value in by_path.items() if path.startswith(beginning)}


def members_apart(record: Mapping[str, Any], objects: Container[str], above: str = "") -> dict[str, Any]:
    """The fields of a record, and in place of each of these objects its members; those of a list of objects are lists.

    What else a list has stays at its own path.
    """
    apart = dict[str, Any]()
    for name, value in record.items():
        path = f"{above}{as_part(name)}"
        if path not in objects or not isinstance(value, dict | list):
            apart[path] = value
        elif isinstance(value, dict):
            apart |= members_apart(value, objects, f"{path}/")
        else:
            for entry in value:
                members = members_apart(entry, objects, f"{path}/") if isinstance(entry, dict) else {path: entry}
                for member, part in members.items() if entry is not None else ():
                    apart.setdefault(member, []).extend(part if isinstance(part, list) else [part])
    return apart
