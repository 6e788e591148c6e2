"""The schema with views over all libraries. Names, columns and comments are those of DuckDB's catalogue, so that queries run on both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from importlib import resources

from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import STAGED, TABLES
from pipelines.records.tables.shared_columns import SNAPSHOT_AT
from pipelines.store.catalogue import SNAPSHOTS, TABLES_READ, deleted_rows, deleted_view, table_views, tables_read_rows
from pipelines.store.parquet import quoted
from pipelines.store.postgres.definitions import comments, sql_type
from pipelines.store.postgres.observed import ObservedOf, with_observed
from pipelines.store.postgres.server import Session


@dataclass(frozen=True)
class Source:
    """Rows of one tenant. `columns`: name → type of the columns of `relation`, whose alias is `r`."""

    schema: str
    relation: str
    columns: Mapping[str, str]
    snapshot: str = 'r."snapshot"'
    """The expression of the snapshot."""
    beside: str = ""
    """What follows the relation in FROM."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Column → the expression that stands in its place."""


Columns = Mapping[str, Mapping[str, str]]
"""View → column → type."""

Sources = Mapping[str, Sequence[Source]]
"""View → the tables with its rows."""


@dataclass(frozen=True)
class View:
    """One view: its description and its SELECT."""

    table: Table
    rows: str

    @property
    def columns(self) -> dict[str, str]:
        """Name → type."""
        return {column.name: sql_type(column) for column in self.table.columns}


def wanted_views(sources: Sources, observed: ObservedOf) -> list[View]:
    """All views; each comes after the views it needs. `observed`: the columns of the tables besides the described ones."""
    tables = [with_observed(table.impersonal, observed) for table in TABLES.values()]
    plain = [SNAPSHOTS, *(view for table in tables for view in table_views(table))]
    views = [View(table, _union(table, sources.get(table.name, ()))) for table in plain]
    views.append(View(TABLES_READ, tables_read_rows()))
    for resource, (records, *_) in STAGED.items():
        gone = deleted_view(with_observed(records.impersonal, observed))
        names = ", ".join(quoted(column.name) for column in gone.columns)
        views.append(View(gone, f"SELECT {names} FROM ({deleted_rows(records, resource)}) AS gone"))  # noqa: S608  names of ours
    return views


def views_to_replace(existing: Columns, changed: AbstractSet[str], observed: ObservedOf) -> set[str]:
    """The views to create or replace when the tables behind `changed` change.

    A view can only get new columns at its end. If a description changed otherwise, all views are replaced. `existing`: the columns of the
    existing views.
    """
    views = {view.table.name: view for view in wanted_views({}, observed)}
    if any(not _extends(view.columns, existing.get(name, {})) for name, view in views.items()):
        return set(views)
    longer = {name for name, view in views.items() if list(existing.get(name, {})) != list(view.columns)}
    return longer | (changed & views.keys())


def create_views(  # noqa: PLR0917  what is there and what is wanted
    session: Session, schema: str, sources: Sources, existing: Columns, names: AbstractSet[str], observed: ObservedOf
) -> None:
    """Create the views of these names, in the caller's transaction."""
    views = [view for view in wanted_views(sources, observed) if view.table.name in names]
    if any(not _extends(view.columns, existing.get(view.table.name, {})) for view in views):
        drop_views(session, schema, existing)
        existing = {}
    statements = [f"SET LOCAL search_path = {quoted(schema)}, pg_catalog"]
    for view in views:
        statements.append(f"CREATE OR REPLACE VIEW {quoted(schema, view.table.name)} AS {view.rows}")
        if list(existing.get(view.table.name, {})) != list(view.columns):
            statements += comments("VIEW", schema, view.table.name, view.table.comment, view.table.columns)
    if any(view.table.name not in existing for view in views):  # dropped views take functions with them
        statements += _functions(schema)
    session.run(*statements, "SET LOCAL search_path = pg_catalog")


def own_views(sources: Sources, observed: ObservedOf) -> list[View]:
    """The views in the schema of one tenant: the newest snapshot and the history of each table, with all columns."""
    views = (view for table in TABLES.values() for view in table_views(with_observed(table, observed)))
    return [View(view, _union(view, sources[view.name])) for view in views if view.name in sources]


def create_own_views(session: Session, schema: str, views: Sequence[View], existing: Columns) -> None:
    """Create or replace the views of one tenant, and drop those of `existing` that are not wanted, in the caller's transaction."""
    unfit = existing.keys() - {
        one.table.name for one in views if _extends(one.columns, existing.get(one.table.name, {}))
    }
    if unfit:
        session.run(f"DROP VIEW {', '.join(quoted(schema, name) for name in sorted(unfit))}")
    for view in views:
        session.run(
            f"CREATE OR REPLACE VIEW {quoted(schema, view.table.name)} AS {view.rows}",
            *comments("VIEW", schema, view.table.name, view.table.comment, view.table.columns),
        )


def _functions(schema: str) -> Iterator[str]:
    yield _sql("json_keys").format(schema=quoted(schema))
    for resource, tables in STAGED.items():
        for table in tables:
            yield _sql("as_of").format(schema=quoted(schema), table=table.name, resource=resource)


def drop_views(session: Session, schema: str, existing: Mapping[str, object]) -> None:
    """Drop these views, and the functions that return their rows."""
    functions = session.rows(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = %s::text::regnamespace AND prorettype <> 'text[]'::regtype",
        quoted(schema),
    )
    session.run(*(f"DROP FUNCTION {function}" for (function,) in functions))
    if existing:
        session.run(f"DROP VIEW {', '.join(quoted(schema, name) for name in existing)}")


def _extends(columns: Mapping[str, str], existing: Mapping[str, str]) -> bool:
    return list(columns.items())[: len(existing)] == list(existing.items())


def _union(table: Table, sources: Sequence[Source]) -> str:
    """The rows of all sources in the columns and types of the description. Columns that a source lacks are null."""
    parts = [
        f"SELECT {', '.join(_column(column, source) for column in table.columns)} "  # noqa: S608  names of ours
        f"FROM {quoted(source.schema, source.relation)} AS r{source.beside}"
        for source in sources
    ]
    nothing = ", ".join(f"NULL::{sql_type(column)} AS {quoted(column.name)}" for column in table.columns)
    return " UNION ALL ".join(parts) or f"SELECT {nothing} WHERE false"


def _column(column: Column, source: Source) -> str:
    name, kind = quoted(column.name), sql_type(column)
    if column.name == "snapshot":
        return f"{source.snapshot} AS {name}"
    if column.name == SNAPSHOT_AT.name:
        return f"({source.snapshot})::{kind} AS {name}"
    own = source.columns.get(column.name)
    if own is None:
        return f"NULL::{kind} AS {name}"
    if column.name in source.others:
        return f"{source.others[column.name]} AS {name}"
    if own == kind:
        return f"r.{name}"
    return f"to_jsonb(r.{name}) AS {name}" if column.json else f"r.{name}::{kind} AS {name}"


def _sql(name: str) -> str:
    return resources.files("sql").joinpath("postgres", f"{name}.sql").read_text(encoding="utf-8")
