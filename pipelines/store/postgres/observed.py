"""Observed columns (shapes/columns.py) in the database. The comment of a column says that it is one.

A table has the observed columns of its own snapshot. The views have those of all snapshots, each in the widest type that any has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pipelines.records.shapes.columns import ARROW_TYPES, OBSERVED, ColumnType, widest, with_columns
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import PERSONAL_TABLES, STAGED
from pipelines.store.postgres.definitions import sql_type
from pipelines.store.postgres.schemas import TenantSchemas
from pipelines.store.postgres.server import Session
from pipelines.store.snapshots.snapshots import Snapshot

RESOURCE_OF = {tables[0].name: resource for resource, tables in STAGED.items()}
"""Table with a row for each record → its resource; only these have observed columns."""

IMPERSONAL = tuple(name for name in RESOURCE_OF if name not in PERSONAL_TABLES)
"""Those of them that are not about people."""

_TYPES = {sql_type(Column("", ARROW_TYPES[kind], "", json=kind == ColumnType.JSON)): kind for kind in ColumnType}
"""Postgres's type → ours."""

ObservedOf = Mapping[str, Sequence[Column]]
"""Table → its observed columns."""


def loaded_table(table: Table, snapshot: Snapshot) -> Table:
    """A table with the observed columns of a snapshot."""
    resource = RESOURCE_OF.get(table.name)
    return table if resource is None else with_columns(table, snapshot.manifest.observed.get(resource, ()))


def observed_in_views(
    session: Session,
    tenants: Iterable[TenantSchemas],
    fresh: Iterable[Table],
    there: Mapping[str, Collection[str]],
    tables: Collection[str] = IMPERSONAL,
) -> ObservedOf:
    """The observed columns of all tenants, those of `fresh` included. `there`: the columns of the views, which keep their order.

    By default the tables about people have none here: their observed columns are personal.
    """
    found: dict[str, list[Column]] = {}
    for relation, column in _observed(session, tenants):
        if (name := _table_of(relation, tables)) is not None:
            found.setdefault(name, []).append(column)
    for table in fresh:
        if table.name in tables:
            described = {column.name for column in STAGED[RESOURCE_OF[table.name]][0].columns}
            found.setdefault(table.name, []).extend(one for one in table.columns if one.name not in described)
    return {name: _united(columns, [*there.get(name, ())]) for name, columns in found.items()}


def with_observed(table: Table, observed: ObservedOf) -> Table:
    """The table with its observed columns."""
    return replace(table, columns=(*table.columns, *observed.get(table.name, ())))


def _table_of(relation: str, tables: Iterable[str]) -> str | None:
    """The table of which a relation has the rows of a snapshot: its name is the table's, or begins with it."""
    return next((name for name in tables if relation == name or relation.startswith(f"{name}_")), None)


def _observed(session: Session, tenants: Iterable[TenantSchemas]) -> list[tuple[str, Column]]:
    """Relation and column of each observed column of these tenants, oldest first."""
    rows = session.rows(
        """SELECT relname, attname, format_type(atttypid, atttypmod), col_description(pg_class.oid, attnum)
           FROM pg_attribute
           JOIN pg_class ON pg_class.oid = attrelid
           JOIN pg_namespace ON pg_namespace.oid = relnamespace
           WHERE nspname = ANY(%s) AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
               AND starts_with(col_description(pg_class.oid, attnum), %s)
           ORDER BY nspname, pg_class.oid, attnum""",
        [tenant.main for tenant in tenants],
        OBSERVED,
    )
    found = list[tuple[str, Column]]()
    for relation, name, kind, comment in rows:
        column_type = _TYPES.get(kind, ColumnType.TEXT)
        column = Column(name, ARROW_TYPES[column_type], comment, json=column_type == ColumnType.JSON)
        found.append((relation, column))
    return found


def _united(columns: Iterable[Column], there: Sequence[str]) -> tuple[Column, ...]:
    """Each name once, in the widest type. Those in `there` come first, in its order."""
    by_name: dict[str, Column] = {}
    for column in columns:
        before = by_name.get(column.name, column)
        kind = widest((_TYPES[sql_type(before)], _TYPES[sql_type(column)]))
        by_name[column.name] = replace(column, type=ARROW_TYPES[kind], json=kind == ColumnType.JSON)
    known = {name: place for place, name in enumerate(there)}
    return tuple(sorted(by_name.values(), key=lambda column: known.get(column.name, len(known))))
