"""Observed columns (shapes/columns.py) in the database. The comment of a column says that it is one.

A history has one type for all its snapshots: the widest that was observed, so that an older snapshot is converted when it is loaded, and a
history that is there when a wider type comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pipelines.records.shapes.columns import ARROW_TYPES, OBSERVED, ColumnType, widest
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import PERSONAL_TABLES, STAGED
from pipelines.store.catalogue import observed_table
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.definitions import history_name, sql_type
from pipelines.store.postgres.schemas import TenantSchemas
from pipelines.store.postgres.server import Session
from pipelines.store.snapshots.snapshots import Snapshot

RESOURCE_OF = {tables[0].name: resource for resource, tables in STAGED.items()}
"""Table with a row for each record → its resource; only these have observed columns."""

_TYPES = {sql_type(Column("", ARROW_TYPES[kind], "", json=kind == ColumnType.JSON)): kind for kind in ColumnType}
"""Postgres's type → ours."""

ObservedOf = Mapping[str, Sequence[Column]]
"""Table → its observed columns."""


def loaded_table(session: Session, schemas: TenantSchemas, table: Table, snapshots: Iterable[Snapshot]) -> Table:
    """A table with the observed columns of all these snapshots, each in the widest type that they or the database have."""
    resource = RESOURCE_OF.get(table.name)
    if resource is None:
        return table
    there = _observed(session, [(schemas.main, history_name(table.name))])
    further = observed_table(table, resource, snapshots).columns[len(table.columns) :]
    return replace(table, columns=(*table.columns, *_united([*there.get(table.name, ()), *further])))


def observed_in_views(session: Session, tenants: Iterable[TenantSchemas], fresh: Iterable[Table]) -> ObservedOf:
    """The observed columns of all tenants, those of `fresh` included. Columns that are there keep their order.

    The tables about people have none here: their observed columns are personal.
    """
    tables = [name for name in RESOURCE_OF if name not in PERSONAL_TABLES]
    found = _observed(session, [(tenant.main, history_name(name)) for tenant in tenants for name in tables])
    for table in fresh:
        if table.name in tables:
            described = {column.name for column in _described(table.name).columns}
            found.setdefault(table.name, []).extend(one for one in table.columns if one.name not in described)
    return {name: _united(columns) for name, columns in found.items()}


def widened_columns(table: Table, there: Mapping[str, str]) -> list[Column]:
    """The observed columns of a table that its history has in another type. `there`: column → type."""
    if table.name not in RESOURCE_OF:
        return []
    described = {column.name for column in _described(table.name).columns}
    further = (column for column in table.columns if column.name not in described)
    return [column for column in further if there.get(column.name, sql_type(column)) != sql_type(column)]


def widen(relation: str, column: Column) -> str:
    """The statement that gives a column of a history its wider type."""
    name = quoted(column.name)
    value = f"to_jsonb({name})" if column.json else f"{name}::{sql_type(column)}"
    return f"ALTER TABLE {relation} ALTER COLUMN {name} TYPE {sql_type(column)} USING {value}"


def with_observed(table: Table, observed: ObservedOf) -> Table:
    """The table with its observed columns."""
    return replace(table, columns=(*table.columns, *observed.get(table.name, ())))


def _described(name: str) -> Table:
    return STAGED[RESOURCE_OF[name]][0]


def _observed(session: Session, relations: Sequence[tuple[str, str]]) -> dict[str, list[Column]]:
    """Table → the observed columns of its histories, in the order in which they were added."""
    names = ", ".join(f"({literal(schema)}, {literal(name)})" for schema, name in relations)
    rows = session.rows(
        f"""SELECT relname, attname, format_type(atttypid, atttypmod), col_description(pg_class.oid, attnum)
            FROM pg_attribute
            JOIN pg_class ON pg_class.oid = attrelid
            JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE (nspname, relname) IN ({names}) AND attnum > 0 AND NOT attisdropped
                AND starts_with(col_description(pg_class.oid, attnum), %s)
            ORDER BY nspname, relname, attnum""",  # noqa: S608  names of ours, quoted
        OBSERVED,
    )
    found: dict[str, list[Column]] = {}
    for relation, name, kind, comment in rows:
        column_type = _TYPES.get(kind, ColumnType.TEXT)
        column = Column(name, ARROW_TYPES[column_type], comment, json=column_type == ColumnType.JSON)
        found.setdefault(relation.removesuffix(history_name("")), []).append(column)
    return found


def _united(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Each name once, in the widest type."""
    by_name: dict[str, Column] = {}
    for column in columns:
        before = by_name.get(column.name, column)
        kind = widest((_TYPES[sql_type(before)], _TYPES[sql_type(column)]))
        by_name[column.name] = replace(column, type=ARROW_TYPES[kind], json=kind == ColumnType.JSON)
    return tuple(by_name.values())


def comments_of(relation: str, columns: Iterable[Column]) -> Iterator[str]:
    """The comments of columns that were added to a history."""
    for column in columns:
        yield f"COMMENT ON COLUMN {relation}.{quoted(column.name)} IS {literal(column.comment)}"
