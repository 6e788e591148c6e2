"""SQL from the table descriptions: names, types, tables and comments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pyarrow as pa

from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.shared_columns import SNAPSHOT_COLUMNS
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


def column_list(names: tuple[str, ...]) -> str:
    """A list of column names."""
    return ", ".join(map(quoted, names))


def fitting_name(name: str) -> str:
    """Shortens a name that Postgres would cut; its end becomes a checksum of the whole."""
    as_bytes = name.encode()
    if len(as_bytes) <= MOST_BYTES:
        return name
    digest = hashlib.sha256(as_bytes).hexdigest()[:8]
    return f"{as_bytes[: MOST_BYTES - 9].decode(errors='ignore')}_{digest}"


def load_name(table: str, snapshot: str) -> str:
    """The name of the table of a whole load, in lower case, so that it needs no quotation marks."""
    return fitting_name(f"{table}_{snapshot}".lower())


def history_name(table: str) -> str:
    """The view of every snapshot of a table."""
    return f"{table}_history"


def staged_columns(table: Table) -> tuple[Column, ...]:
    """The columns of a table in Postgres: tenant and snapshot, then its own."""
    return (*SNAPSHOT_COLUMNS, *table.columns)


def create_table(schema: str, table: Table) -> str:
    """A table for the rows of one snapshot.

    Autovacuum is off until the swap: a table cannot be renamed while autovacuum works on it.
    """
    columns = ", ".join(f"{quoted(column.name)} {sql_type(column)}" for column in table.columns)
    return f"CREATE TABLE {quoted(schema, table.name)} ({columns}) WITH (autovacuum_enabled = off)"


def snapshot_columns(tenant: str, snapshot: str) -> Iterator[str]:
    """The clauses that add the columns tenant and snapshot to a filled table.

    Postgres stores a column's default once per table, so that a column added after the rows takes no space and no time. The check lets the
    planner skip the tables of other tenants.
    """
    for column, value in zip(SNAPSHOT_COLUMNS, map(literal, (tenant, snapshot)), strict=True):
        name = quoted(column.name)
        check = f" CHECK ({name} = {value})" if column.name == "tenant" else ""
        yield f"ADD COLUMN {name} {sql_type(column)} NOT NULL DEFAULT {value}{check}"


def comments(kind: str, schema: str, name: str, comment: str, columns: tuple[Column, ...]) -> Iterator[str]:
    """The comments of a table or view and its columns."""
    yield f"COMMENT ON {kind} {quoted(schema, name)} IS {literal(comment)}"
    for column in columns:
        yield f"COMMENT ON COLUMN {quoted(schema, name, column.name)} IS {literal(column.comment)}"
