"""Observed columns (shapes/columns.py) in the database. The comment of a column says that it is one.

The tables of a library keep their values as `jsonb`, whatever their type is. The views of the library have the widest type that any of its
snapshots had, and those over all libraries the widest of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pipelines.records.shapes.columns import ARROW_TYPES, OBSERVED, ColumnType, widest, with_columns
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import PERSONAL_TABLES, STAGED
from pipelines.store.postgres.definitions import rows_name, sql_type
from pipelines.store.postgres.server import Session
from pipelines.store.snapshots.snapshots import Snapshot

RESOURCE_OF = {tables[0].name: resource for resource, tables in STAGED.items()}
"""Table with a row for each record → its resource; only these have observed columns."""

IMPERSONAL = tuple(name for name in RESOURCE_OF if name not in PERSONAL_TABLES)
"""Those of them that are not about people: the observed columns of the others are personal."""

_TYPES = {sql_type(Column("", ARROW_TYPES[kind], "", json=kind == ColumnType.JSON)): kind for kind in ColumnType}
"""Postgres's type → ours."""

ObservedOf = Mapping[str, Sequence[Column]]
"""Table → its observed columns."""


def loaded_table(table: Table, snapshot: Snapshot) -> Table:
    """A table with the observed columns of a snapshot."""
    resource = RESOURCE_OF.get(table.name)
    return table if resource is None else with_columns(table, snapshot.manifest.observed.get(resource, ()))


def observed_of(table: Table) -> list[Column]:
    """The observed columns of such a table."""
    return [column for column in table.columns if column.comment.startswith(OBSERVED)]


def with_observed(table: Table, observed: ObservedOf) -> Table:
    """The table with its observed columns."""
    return replace(table, columns=(*table.columns, *observed.get(table.name, ())))


def observed_columns(
    session: Session, schemas: Sequence[str], tables: Iterable[str], fresh: Iterable[Table] = (), first: str = ""
) -> ObservedOf:
    """The observed columns of the views in these schemas, of `fresh` tables, and of kept rows that no view shows, in the widest type.

    Those of the schema `first` come first, in their order: a view can only get new columns at its end.
    """
    columns: dict[str, dict[str, Column]] = {table: {} for table in tables}
    kept = {rows_name(table): table for table in columns}
    rows = session.rows(
        """SELECT relname, attname, format_type(atttypid, atttypmod), col_description(pg_class.oid, attnum)
           FROM pg_attribute
           JOIN pg_class ON pg_class.oid = attrelid
           JOIN pg_namespace ON pg_namespace.oid = relnamespace
           WHERE nspname = ANY(%s) AND relname = ANY(%s) AND attnum > 0 AND NOT attisdropped
               AND starts_with(col_description(pg_class.oid, attnum), %s)
           ORDER BY nspname <> %s, nspname, relkind DESC, pg_class.oid, attnum""",
        [first, *schemas],
        [*columns, *kept],
        OBSERVED,
        first,
    )
    hidden = list[tuple[str, Column]]()
    for relation, name, kind, comment in rows:
        column_type = _TYPES.get(kind, ColumnType.TEXT)
        column = Column(name, ARROW_TYPES[column_type], comment, json=column_type == ColumnType.JSON)
        if relation in columns:
            _widen(columns[relation], column)
        else:
            hidden.append((kept[relation], column))
    for table in fresh:
        if table.name in columns:
            for column in observed_of(table):
                _widen(columns[table.name], column)
    for table_name, column in hidden:
        columns[table_name].setdefault(column.name, column)
    return {table: tuple(each.values()) for table, each in columns.items()}


def _widen(columns: dict[str, Column], column: Column) -> None:
    """Add a column, or give the one of its name a type that holds the values of both."""
    before = columns.setdefault(column.name, column)
    kind = widest((_TYPES[sql_type(before)], _TYPES[sql_type(column)]))
    columns[column.name] = replace(before, type=ARROW_TYPES[kind], json=kind == ColumnType.JSON)
