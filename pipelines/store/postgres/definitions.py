"""SQL from the descriptions of the tables: names, types, tables and their comments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import pyarrow as pa

from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.shared_columns import SNAPSHOT_COLUMNS
from pipelines.store.parquet import literal, quoted

MOST_BYTES = 63
"""Bytes of a name in Postgres; what is longer it cuts without an error."""

TYPES = {
    pa.int64(): "bigint",
    pa.int32(): "integer",
    pa.string(): "text",
    pa.date32(): "date",
    pa.bool_(): "boolean",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
}
"""Arrow's type → the name that Postgres itself uses."""


def sql_type(column: Column) -> str:
    """The type of a column."""
    return "jsonb" if column.json else TYPES[column.type]


def listed(names: tuple[str, ...]) -> str:
    """Names of columns."""
    return ", ".join(map(quoted, names))


def fitting(name: str) -> str:
    """A name that Postgres does not cut: one that is too long ends in a checksum of itself."""
    as_bytes = name.encode()
    if len(as_bytes) <= MOST_BYTES:
        return name
    digest = hashlib.sha256(as_bytes).hexdigest()[:8]
    return f"{as_bytes[: MOST_BYTES - 9].decode(errors='ignore')}_{digest}"


def partition_name(table: str, snapshot: str) -> str:
    """What a table is called once it is history. In small letters: so it can be written without quotation marks."""
    return fitting(f"{table}_{snapshot}".lower())


def history_name(table: str) -> str:
    """The partitioned table with every snapshot of a table."""
    return f"{table}_history"


def staged_columns(table: Table) -> tuple[Column, ...]:
    """The columns of a table here: those that say whose and when, and its own."""
    return (*SNAPSHOT_COLUMNS, *table.columns)


def create_table(schema: str, table: Table, beside: Mapping[str, str] | None = None) -> str:
    """A table for the rows of one snapshot. `beside`: columns and types that its history has from an older description.

    The server's own vacuum keeps away until the table is shown: while it is at work on a table, that cannot be renamed.
    """
    columns = [f"{quoted(one.name)} {sql_type(one)}" for one in table.columns]
    columns += [f"{quoted(name)} {kind}" for name, kind in (beside or {}).items()]
    return f"CREATE TABLE {quoted(schema, table.name)} ({', '.join(columns)}) WITH (autovacuum_enabled = off)"


def snapshot_columns(tenant: str, snapshot: str) -> Iterator[str]:
    """What gives the rows that a table has the columns that say whose and when they are.

    A column that comes after the rows takes no room in them, and no time: Postgres keeps its value once, with the table. The checks let
    the planner leave out whole tables, and let a partition be attached without reading it.
    """
    for one, value in zip(SNAPSHOT_COLUMNS, map(literal, (tenant, snapshot)), strict=True):
        name = quoted(one.name)
        yield f"ADD COLUMN {name} {sql_type(one)} NOT NULL DEFAULT {value} CHECK ({name} = {value})"


def create_history(schema: str, table: Table) -> Iterator[str]:
    """The partitioned table over all snapshots of a table."""
    name = history_name(table.name)
    columns = [f"{quoted(one.name)} {sql_type(one)}" for one in staged_columns(table)]
    yield f"CREATE TABLE {quoted(schema, name)} ({', '.join(columns)}) PARTITION BY LIST (snapshot)"
    yield from comments("TABLE", schema, name, f"{table.comment} Every snapshot.", staged_columns(table))


def comments(kind: str, schema: str, name: str, comment: str, columns: tuple[Column, ...]) -> Iterator[str]:
    """What a table or view says of itself."""
    yield f"COMMENT ON {kind} {quoted(schema, name)} IS {literal(comment)}"
    for column in columns:
        yield f"COMMENT ON COLUMN {quoted(schema, name, column.name)} IS {literal(column.comment)}"
