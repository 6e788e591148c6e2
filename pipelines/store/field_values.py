"""What the records of a raw table have in certain fields: in one query for all records, because there may be millions (I11)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipelines.inventory import LIST_PATHS
from pipelines.records.residue import SIGNED_ADDRESS
from pipelines.records.values import decode_json
from pipelines.store.parquet import json_path, literal, open_in_duckdb

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_VALUES = 10_000
"""Different values that are compared with the choices of a description."""

_TYPES = {"VARCHAR": "string", "BOOLEAN": "boolean", "ARRAY": "array", "OBJECT": "object", "DOUBLE": "number"}
"""DuckDB's name of the type of a JSON value → that of JSON Schema; all others are whole numbers."""

_WITH_ID = r'"(?:[^"]*[_.-])?[Ii][Dd]s?":[^n]|"[^"]*[a-z0-9]I[Dd]s?":[^n]'
"""Matches the JSON of a value in which an object has the id of a record, in any spelling."""

RECORD_ADDRESS = (
    rf"(?i)(?:(?:https?:)?//?\S*/api/v[0-9]+/|/?(?:api/v[0-9]+/)?)(?P<path>{'|'.join(LIST_PATHS.values())})"
    r"/[^/?#\s]*[0-9][^/?#\s]*(?:[/?#]\S*)?"
)
"""Matches the address of a record in the API, with or without the library's own: `/publications/3`, `https://library/api/v2/users/7`."""

_VALUES = """
    SELECT name, value
    FROM (
        SELECT unnest({names}) AS name, unnest(found) AS value
        FROM (SELECT TRY(json_extract(payload, {paths})) AS found FROM file)
    )
    WHERE value IS NOT NULL AND value::VARCHAR NOT IN ('null', '""', '[]', '{{}}')
"""

_FOUND = """
    SELECT
        name, json_type(value) AS type, list_sort(list_distinct(json_type(value, '$[*]'))) AS entry_types,
        bool_or(regexp_matches(value::VARCHAR, {with_id})), bool_or(regexp_matches(value::VARCHAR, {signed}))
    FROM ({values})
    GROUP BY ALL
"""

_WITH_NUMBERS = """
    SELECT DISTINCT name, value::VARCHAR
    FROM ({values})
    WHERE json_type(value) <> 'VARCHAR' OR regexp_full_match(value ->> '$', {with_number})
"""

_BATCH = 1000

_CHOSEN = """
    SELECT DISTINCT name, entry ->> '$'
    FROM (
        SELECT name, unnest(CASE json_type(value) WHEN 'ARRAY' THEN json_extract(value, '$[*]') ELSE [value] END) AS entry
        FROM ({values})
    )
    WHERE json_type(entry) <> 'NULL'
    LIMIT {most}
"""

_NAMES = "SELECT DISTINCT unnest(TRY(json_keys(payload))) AS name FROM file ORDER BY name LIMIT {most}"

_SHOWN = "SELECT {flags} FROM file"

_WHOLE_NUMBER = "integer"


class FoundValues(msgspec.Struct):
    """What the records have in one field, null and empty values apart."""

    types: set[str] = msgspec.field(default_factory=set)
    """Names of JSON Schema."""
    entry_types: set[str] = msgspec.field(default_factory=set)
    """The same for the entries of lists."""
    has_ids: bool = False
    """Whether objects in it have the id of a record."""
    is_signed: bool = False
    """Whether any of it is a signed address."""

    @property
    def is_number(self) -> bool:
        """Whether all values are whole numbers, or lists of them."""
        return self.types | self.entry_types <= {_WHOLE_NUMBER, "array"} and _WHOLE_NUMBER in (
            self.types | self.entry_types
        )


def field_names(raw: Path, most: int) -> list[str]:
    """The names of the fields of all records in a raw table, at most so many."""
    with open_in_duckdb(raw) as database:
        return [name for (name,) in database.execute(_NAMES.format(most=most)).fetchall() if name is not None]


def field_values(raw: Path, names: Sequence[str]) -> dict[str, FoundValues]:
    """Field → what the records of a raw table have in it; a field that no record has is absent. Names have no quotation mark."""
    found: dict[str, FoundValues] = {}
    if not names:
        return found
    query = _FOUND.format(values=_values(names), with_id=literal(_WITH_ID), signed=literal(SIGNED_ADDRESS))
    with open_in_duckdb(raw) as database:
        for name, kind, entry_kinds, has_ids, is_signed in database.execute(query).fetchall():
            values = found.setdefault(name, FoundValues())
            values.types.add(_TYPES.get(kind, _WHOLE_NUMBER))
            values.entry_types |= {_TYPES.get(one, _WHOLE_NUMBER) for one in entry_kinds if one != "NULL"}
            values.has_ids |= has_ids
            values.is_signed |= is_signed
    return found


def values_with_numbers(raw: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield `{name: value}` for each different value of these fields that may have numbers of records: all but words."""
    if not names:
        return
    with open_in_duckdb(raw) as database:
        found = database.execute(
            _WITH_NUMBERS.format(values=_values(names), with_number=literal(f"[0-9]+|{RECORD_ADDRESS}"))
        )
        while rows := found.fetchmany(_BATCH):
            yield from ({name: decode_json(value.encode())} for name, value in rows)


def shown_fields(raw: Path, names: Sequence[str]) -> dict[str, FoundValues]:
    """The same, and no values for a field that all records have empty: that it is there shows that the library has it."""
    found = field_values(raw, names)
    if others := [name for name in names if name not in found]:
        flags = ", ".join(f"bool_or(TRY(json_exists(payload, {json_path(name)})))" for name in others)
        with open_in_duckdb(raw) as database:
            ((*shown,),) = database.execute(_SHOWN.format(flags=flags)).fetchall()
        found |= {name: FoundValues() for name, is_shown in zip(others, shown, strict=True) if is_shown}
    return found


def empty_fields(raw: Path, names: Sequence[str]) -> dict[str, FoundValues]:
    """Those of the fields that have an empty text or list in any record; without values."""
    if not names:
        return {}
    empty = (f"bool_or(TRY(json_extract(payload, {json_path(name)}))::VARCHAR IN ('\"\"', '[]'))" for name in names)
    with open_in_duckdb(raw) as database:
        ((*found,),) = database.execute(_SHOWN.format(flags=", ".join(empty))).fetchall()
    return {name: FoundValues() for name, is_empty in zip(names, found, strict=True) if is_empty}


def contradicted(raw: Path, choices: Mapping[str, Collection[str]]) -> set[str]:
    """The fields in which any record of a raw table has a value that is none of these choices."""
    if not choices:
        return set()
    with open_in_duckdb(raw) as database:
        return {name for name, value in _chosen(database, [*choices]) if value not in choices[name]}


def _chosen(database: DuckDBPyConnection, names: Sequence[str]) -> list[tuple[str, str]]:
    return database.execute(_CHOSEN.format(values=_values(names), most=MOST_VALUES)).fetchall()


def _values(names: Sequence[str]) -> str:
    """SQL of the values of these fields that are not empty: name, value."""
    return _VALUES.format(names=f"[{', '.join(map(literal, names))}]", paths=f"[{', '.join(map(json_path, names))}]")
