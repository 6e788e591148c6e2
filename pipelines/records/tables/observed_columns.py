"""Columns for the fields that no described column takes, from the shape of all records of a resource.

A scalar is a column of its type. The members of an object are columns named after their path, such as `location_name`. A list, a map, and
what is nested more deeply is one column with JSON. A column that was seen once stays, so that the table has the same columns from night to
night; its type only widens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from enum import StrEnum

import msgspec
import pyarrow as pa

from pipelines.records.residue import IGNORED, PICTURES
from pipelines.records.shapes.observation import ANY_KEY, OTHERS, SCALARS, FieldShape, Kind, ObservedColumn, RecordShape
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.shared_columns import VIEW_COLUMNS

MAX_COLUMNS = 200
"""Columns that a table gets besides the described ones; further fields stay residue."""

MAX_DEPTH = 3
"""Objects below each other whose members are columns."""

OBSERVED = "The service's own field "
"""How the comment of every observed column begins."""

RAW = "_raw"
"""Suffix of the column with the values of a described field that do not fit its column."""


class ColumnType(StrEnum):
    """The type of an observed column, from the narrowest to the widest but for the numbers."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    TEXT = "text"
    JSON = "json"


ARROW_TYPES: Mapping[str, pa.DataType] = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TEXT: pa.string(),
    ColumnType.JSON: pa.string(),
}

_OF_KIND = {
    Kind.BOOLEAN: ColumnType.BOOLEAN,
    Kind.INTEGER: ColumnType.INTEGER,
    Kind.NUMBER: ColumnType.NUMBER,
    Kind.DATE: ColumnType.DATE,
    Kind.TIME: ColumnType.TEXT,
    Kind.TEXT: ColumnType.TEXT,
    Kind.LARGE_INTEGER: ColumnType.TEXT,
}

_HELD_BY: Mapping[pa.DataType, AbstractSet[Kind]] = {
    pa.int64(): frozenset({Kind.INTEGER}),
    pa.date32(): frozenset({Kind.DATE}),
    pa.string(): frozenset(Kind),
}
"""Type of a described column → the kinds of values that it holds; text holds every value, as JSON if it is not text."""


def widest(types: Iterable[str]) -> str:
    """The narrowest type that holds the values of all these types."""
    distinct_types = frozenset(types)
    if len(distinct_types) == 1:
        return next(iter(distinct_types))
    if ColumnType.JSON in distinct_types:
        return ColumnType.JSON
    return ColumnType.NUMBER if distinct_types == {ColumnType.INTEGER, ColumnType.NUMBER} else ColumnType.TEXT


def observe_columns(
    shape: RecordShape, tables: Sequence[Table], *, earlier: Iterable[ObservedColumn] = (), today: str
) -> list[ObservedColumn]:
    """The columns for the fields of records. `tables`: the described tables of the resource; `earlier`: those of the snapshot before."""
    described = {column.name: column for column in tables[0].columns}
    lists = {table.entries: table for table in tables[1:]}
    earlier_columns = {column.path: column for column in earlier if _is_free(column.name)}
    taken_names = {*described, *_RESERVED} | {column.name for column in earlier_columns.values()}
    names = {name.casefold() for name in taken_names}
    columns: dict[tuple[str, ...], ObservedColumn] = {}
    for path, column_type in _wanted(shape, described, lists):
        before = earlier_columns.get(path)
        if before is not None:
            column = msgspec.structs.replace(before, type=widest((before.type, column_type)))
        elif len(earlier_columns) + len(columns) >= MAX_COLUMNS:
            continue
        else:
            column = ObservedColumn(_name(path, column_type, described, names, shape), path, column_type, today)
            names.add(column.name.casefold())
        columns[path] = column
    return [*(earlier_columns | columns).values()]


def _wanted(
    shape: RecordShape, described: Mapping[str, Column], lists: Mapping[str, Table]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths that need a column, with its type, in the order of their names."""
    for name, field in sorted(shape.fields.items()):
        if name in lists:
            if not _holds_all(field, lists[name].columns[-1].type):
                yield (name,), ColumnType.JSON
        elif (column := described.get(name)) is not None and name not in _OURS:
            if not all(kind in _HELD_BY[column.type] for kind in field.kinds):
                nested = {Kind.OBJECT, Kind.LIST} & {Kind(kind) for kind in field.kinds}
                yield (name,), ColumnType.JSON if nested else ColumnType.TEXT
        else:
            yield from _columns_below((name,), field)


_OF_VIEWS = frozenset({*(column.name for column in VIEW_COLUMNS), "missing_in"})
"""Columns that files and views add to those of a table."""

_RESERVED = _OF_VIEWS | {"until", "xmin", "xmax", "cmin", "cmax", "ctid", "tableoid", "oid"}
"""Those, what history adds to them, and the columns that every table of Postgres has."""

MOST_BYTES_OF_NAME = 63
"""Bytes of a name of a column, in UTF-8: Postgres cuts longer ones."""


def _is_free(name: str) -> bool:
    return name.casefold() not in _RESERVED and len(name.encode()) <= MOST_BYTES_OF_NAME


def _fitting(name: str, suffix: str) -> str:
    """The beginning of a name that leaves space for the suffix, and the suffix."""
    return name.encode()[: MOST_BYTES_OF_NAME - len(suffix)].decode(errors="ignore") + suffix


_OURS = frozenset({"residue", "sha256"})
"""Columns that no key of a record fills."""


def _holds_all(field: FieldShape, entry_type: pa.DataType) -> bool:
    """Whether the table of a list takes everything that the list has: plain entries, or objects with the one member that it takes."""
    if {*field.kinds} - {Kind.LIST}:
        return False
    entries = field.entries or FieldShape()
    member = entries.members.get("id" if entry_type == pa.int64() else "name", FieldShape())
    kinds = {*entries.kinds, *member.kinds} - {Kind.OBJECT}
    return len(entries.members) <= bool(member.seen) and all(Kind(kind) in _HELD_BY[entry_type] for kind in kinds)


def _columns_below(path: tuple[str, ...], field: FieldShape) -> Iterator[tuple[tuple[str, ...], str]]:
    if path[-1] in IGNORED or path[-1] in (OTHERS, ANY_KEY):
        return
    kinds = {Kind(kind) for kind in field.kinds}
    scalars = kinds & SCALARS
    whole = Kind.LIST in kinds or (Kind.OBJECT in kinds and (field.is_map or len(path) > MAX_DEPTH))
    if whole:
        yield path, ColumnType.JSON
        return
    if scalars and path[-1] not in PICTURES:  # the address of a picture is signed
        yield path, widest(_OF_KIND[kind] for kind in scalars)
    if Kind.OBJECT in kinds:
        for name, member in sorted(field.members.items()):
            yield from _columns_below((*path, name), member)


def _name(
    path: tuple[str, ...],
    column_type: str,
    described: Mapping[str, Column],
    names: Collection[str],
    shape: RecordShape,
) -> str:
    """A name that no other column has, whatever its case. A described column that no key fills is filled by the path of its name."""
    plain = re.sub(r"\W+", "_", "_".join(path)).strip("_") or "field"
    if path[0] in described and path == (path[0],):
        plain += RAW
    elif (column := described.get(plain)) is not None:
        is_free = plain not in shape.fields and ARROW_TYPES[column_type] == column.type and not column.json
        if is_free and plain not in _OURS:
            return plain
    plain = plain.lower()  # two libraries share views, and DuckDB takes `Due` and `due` for one column
    name, number = _fitting(plain, ""), 1
    while name.casefold() in names:
        number += 1
        name = _fitting(plain, f"_{number}")
    return name


def with_columns(table: Table, observed: Iterable[ObservedColumn]) -> Table:
    """A described table with the observed columns, which come last: a view in Postgres gets new columns at its end only."""
    names = {column.name for column in table.columns}
    personal = any(column.personal for column in table.columns if column.name == "residue")
    further = tuple(_described(column, personal=personal) for column in observed if column.name not in names)
    return replace(table, columns=(*table.columns, *further)) if further else table


def _described(column: ObservedColumn, *, personal: bool) -> Column:
    where = ".".join(column.path)
    form = " as JSON" if column.type == ColumnType.JSON else ""
    comment = f"{OBSERVED}{where}{form}, observed since {column.since}."
    return Column(
        column.name, ARROW_TYPES[column.type], comment, personal=personal, json=column.type == ColumnType.JSON
    )


def united(columns: Iterable[ObservedColumn]) -> list[ObservedColumn]:
    """The columns of several snapshots or libraries together: each name once, whatever its case, with the widest type and the first day."""
    by_name: dict[str, ObservedColumn] = {}
    for column in columns:
        before = by_name.get(column.name.lower())
        if before is not None:
            column = msgspec.structs.replace(  # noqa: PLW2901  the union of both
                before, type=widest((before.type, column.type)), since=min(before.since, column.since)
            )
        by_name[column.name.lower()] = column
    return list(by_name.values())
