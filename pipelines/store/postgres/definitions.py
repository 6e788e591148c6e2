"""SQL from the table descriptions: names, types, tables and comments.

A library's schema has two tables for each table of its snapshots. `..._rows` has the rows of the newest snapshot, with keys and indexes;
`snapshot` is the first snapshot that had the row as it is. `..._past` has the rows that have ended, with `until`, the first snapshot
without them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import pyarrow as pa

from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import tables_named
from pipelines.store.parquet import literal, quoted

MOST_BYTES = 63
"""Bytes of a name; Postgres cuts longer names without an error."""

TYPES = {
    pa.int64(): "bigint",
    pa.int32(): "integer",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.date32(): "date",
    pa.bool_(): "boolean",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
}
"""Arrow's type → Postgres's own name."""


def sql_type(column: Column) -> str:
    """The type of a column."""
    return "jsonb" if column.json else TYPES[column.type]


def column_list(names: Iterable[str], alias: str = "") -> str:
    """A list of column names, of the relation with this alias."""
    return ", ".join(f"{alias}.{quoted(name)}" if alias else quoted(name) for name in names)


def fitting_name(name: str) -> str:
    """Shortens a name that Postgres would cut; its end becomes a checksum of the whole."""
    as_bytes = name.encode()
    if len(as_bytes) <= MOST_BYTES:
        return name
    digest = hashlib.sha256(as_bytes).hexdigest()[:8]
    return f"{as_bytes[: MOST_BYTES - 9].decode(errors='ignore')}_{digest}"


def rows_name(table: str) -> str:
    """The table with the rows of the newest snapshot."""
    return f"{table}_rows"


def tables_among(relations: Iterable[str]) -> dict[str, Table]:
    """Name → table, for every described table, and for those of lists at addresses of their own whose rows are in these relations."""
    return tables_named(name.removesuffix(rows_name("")) for name in relations if name.endswith(rows_name("")))


def past_name(table: str) -> str:
    """The table with the rows that have ended, and those that no key tells apart."""
    return f"{table}_past"


def create_copied(schema: str, table: Table) -> str:
    """A table for the rows of one snapshot as they are copied. It is compared and dropped, so that the server need not log it."""
    columns = ", ".join(f"{quoted(column.name)} {sql_type(column)}" for column in table.columns)
    return f"CREATE UNLOGGED TABLE {quoted(schema, table.name)} ({columns})"


def create_kept(schema: str, table: Table) -> Iterator[str]:
    """The two tables of a library for a described table, without keys."""
    columns = [f"{quoted(column.name)} {sql_type(column)}" for column in table.columns]
    of_rows = [
        f"{text} NOT NULL" if column.name in table.key else text
        for text, column in zip(columns, table.columns, strict=True)
    ]
    rows, past = quoted(schema, rows_name(table.name)), quoted(schema, past_name(table.name))
    yield f"CREATE TABLE {rows} ({', '.join(of_rows)}, snapshot text NOT NULL)"
    yield f"CREATE TABLE {past} ({', '.join(columns)}, snapshot text NOT NULL, until text)"
    yield f"CREATE INDEX ON {past} ({quoted(table.key[0])})"
    yield from comments("TABLE", schema, rows_name(table.name), f"{table.comment} Since `snapshot`.", table.columns)
    comment = (
        f"Rows of {table.name} that have ended: `snapshot` is the first snapshot with the row, `until` the first without it. "
        "Without `until`: rows of the newest snapshot whose key is empty or not unique."
    )
    yield f"COMMENT ON TABLE {past} IS {literal(comment)}"


def comments(kind: str, schema: str, name: str, comment: str, columns: Iterable[Column]) -> Iterator[str]:
    """The comments of a table or view and its columns."""
    yield f"COMMENT ON {kind} {quoted(schema, name)} IS {literal(comment)}"
    for column in columns:
        yield f"COMMENT ON COLUMN {quoted(schema, name, column.name)} IS {literal(column.comment)}"
