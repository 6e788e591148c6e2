"""What the records of a resource look like: every field, how many records have it, and the kinds of its values. No value is kept.

The service does not document the fields of most resources (service.md#not-shown), so they are counted in its own records. All counts come
from outside: their number and depth are limited, and so are the names (I13).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from enum import StrEnum
from typing import Any

import msgspec

from pipelines.records.values import as_id, day, whole_number

MAX_FIELDS = 500
"""Fields of a resource that are counted one by one, nested ones included."""

MAX_DEPTH = 12
"""Depth to which objects are counted."""

MAX_MEMBERS = 40
"""Different keys of a nested object from which it counts as a map, whose keys are values."""

MAX_NAME = 200
"""Characters of a field's name."""

OTHERS = "(other keys)"
"""Stands for all fields beyond these limits."""

ANY_KEY = "*"
"""Stands for every key of a map."""


class Kind(StrEnum):
    """The kind of a JSON value. A date is YYYY-MM-DD (service.md#publications), a time begins like one in ISO 8601."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    LARGE_INTEGER = "large integer"
    """More than 64 bits."""
    NUMBER = "number"
    DATE = "date"
    TIME = "time"
    TEXT = "text"
    OBJECT = "object"
    LIST = "list"


SCALARS = frozenset(Kind) - {Kind.OBJECT, Kind.LIST}

_KINDS = {bool: Kind.BOOLEAN, int: Kind.INTEGER, float: Kind.NUMBER, str: Kind.TEXT, dict: Kind.OBJECT, list: Kind.LIST}
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_TIME_LENGTH = 16
_DATE_LENGTH = 10


class FieldShape(msgspec.Struct, omit_defaults=True, gc=False):
    """One field: in how many objects it is, and what it has there."""

    seen: int = 0
    """Objects with the field, null included."""
    kinds: dict[str, int] = {}
    """`Kind` → values of it."""
    digits: int = 0
    """How many of its texts are ids: whole numbers, or others that records are known to have."""
    members: dict[str, FieldShape] = {}
    """The members of its objects."""
    entries: FieldShape | None = None
    """The entries of its lists; `seen` counts them."""

    @property
    def may_be_ids(self) -> bool:
        """Whether all values are whole numbers, as numbers or as texts, or lists of them."""
        other_kinds = {*self.kinds} - {Kind.INTEGER, Kind.TEXT, Kind.LIST}
        within = self.entries is None or self.entries.may_be_ids
        return not other_kinds and self.kinds.get(Kind.TEXT, 0) == self.digits and within

    @property
    def has_ids(self) -> bool:
        """Whether its objects, or those of its lists, have ids of their own."""
        inside = [self.members, self.entries.members if self.entries else {}]
        return any(members["id"].may_be_ids and members["id"].kinds for members in inside if "id" in members)

    @property
    def is_map(self) -> bool:
        """Whether the keys of its objects are values rather than names."""
        return ANY_KEY in self.members


class RecordShape(msgspec.Struct, omit_defaults=True, gc=False):
    """The shape of the records of one resource."""

    records: int = 0
    """Records that were counted."""
    fields: dict[str, FieldShape] = {}
    sampled: bool = False
    """Whether only some of the records were counted, because the resource is large."""

    def paths(self) -> Iterator[tuple[tuple[str, ...], FieldShape]]:
        """Yield every field with its path through the objects, not through the lists."""
        yield from _paths((), self.fields)


def _paths(above: tuple[str, ...], fields: dict[str, FieldShape]) -> Iterator[tuple[tuple[str, ...], FieldShape]]:
    for name, field in fields.items():
        path = (*above, name)
        yield path, field
        yield from _paths(path, field.members)


class ObservedColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column that was seen in the records of a library. With the name of a described column it fills that one."""

    name: str
    path: tuple[str, ...]
    """Keys from the record to the value."""
    type: str
    """A `ColumnType` of `pipelines.records.tables.observed_columns`."""
    since: str
    """Day of the first snapshot with it, such as 2026-11-22."""


class Observer:
    """Counts the fields of records. `text_ids`: the texts that are ids, besides whole numbers."""

    def __init__(self, text_ids: Container[str] = ()) -> None:
        self.shape = RecordShape()
        self._text_ids = text_ids
        self._fields = 0

    def observe(self, records: Iterable[dict[str, Any]]) -> None:
        """Count the fields of some records."""
        for record in records:
            self.shape.records += 1
            for name, value in record.items():
                self._count(self._field(self.shape.fields, name), value, 1)

    def _field(self, fields: dict[str, FieldShape], name: str) -> FieldShape:
        """The counts of a field, which begin with its first value."""
        shape = fields.get(name)
        if shape is not None:
            return shape
        if self._fields >= MAX_FIELDS or not 0 < len(name) <= MAX_NAME or not name.isprintable():
            return fields.setdefault(OTHERS, FieldShape())
        self._fields += 1
        return fields.setdefault(name, FieldShape())

    def _count(self, field: FieldShape, value: Any, depth: int) -> None:
        field.seen += 1
        if value is None:
            return
        kind, kinds = kind_of(value), field.kinds
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind is Kind.TEXT:
            field.digits += (value.isdigit() and isinstance(as_id(value), int)) or value in self._text_ids
        elif depth >= MAX_DEPTH:
            return
        elif kind is Kind.OBJECT:
            self._count_members(field, value, depth)
        elif kind is Kind.LIST:
            if field.entries is None:
                field.entries = FieldShape()
            for entry in value:
                self._count(field.entries, entry, depth + 1)

    def _count_members(self, field: FieldShape, value: dict[str, Any], depth: int) -> None:
        members = field.members
        is_new = not value.keys() <= members.keys()
        are_ids = is_new and any(name in self._text_ids for name in value)
        if is_new and not field.is_map and (are_ids or len(members.keys() | value.keys()) > MAX_MEMBERS):
            self._become_map(field)
            members = field.members
        for name, member in value.items():
            key = ANY_KEY if ANY_KEY in members else name
            self._count(members.get(key) or self._field(members, key), member, depth + 1)

    def _become_map(self, field: FieldShape) -> None:
        together = FieldShape()
        for member in field.members.values():
            add_to(together, member)
        field.members = {ANY_KEY: together}


def kind_of(value: Any) -> Kind:
    """The kind of a value that is not null."""
    kind = _KINDS.get(type(value), Kind.TEXT)
    if kind is Kind.INTEGER:
        return kind if whole_number(value) is not None else Kind.LARGE_INTEGER
    if kind is not Kind.TEXT or not isinstance(value, str) or len(value) < _DATE_LENGTH or value[4] != "-":
        return kind
    if len(value) == _DATE_LENGTH:
        return Kind.DATE if day(value) is not None else kind
    return Kind.TIME if len(value) >= _TIME_LENGTH and _TIME.match(value) else kind


def add_to(sum_of: FieldShape, added: FieldShape) -> None:
    """Add the counts of one field to those of another."""
    sum_of.seen += added.seen
    sum_of.digits += added.digits
    for kind, count in added.kinds.items():
        sum_of.kinds[kind] = sum_of.kinds.get(kind, 0) + count
    for name, member in added.members.items():
        add_to(sum_of.members.setdefault(name, FieldShape()), member)
    if added.entries is not None:
        if sum_of.entries is None:
            sum_of.entries = FieldShape()
        add_to(sum_of.entries, added.entries)
