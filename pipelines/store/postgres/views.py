"""The views: those of a library over its two tables for each table, and those of one schema over the views of all libraries.

Names, columns and comments are those of DuckDB's catalogue, so that queries run on both. A view is made anew only if its columns change, or
a library comes; what people built on it stays, unless a column must have another type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from pipelines.inventory import parent_of
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import STAGED, tables_of
from pipelines.records.tables.shared_columns import SNAPSHOT_AT
from pipelines.store.catalogue import SNAPSHOTS, TABLES_READ, deleted_rows, deleted_view, table_views, tables_read_rows
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.changes import history_rows, own_rows
from pipelines.store.postgres.definitions import comments, rows_name, sql_type, tables_among
from pipelines.store.postgres.observed import OBSERVED_COLUMNS, ObservedOf, read_observed, with_observed
from pipelines.store.postgres.schemas import TenantSchemas, columns_of, tenants_in_database
from pipelines.store.postgres.server import Session


@dataclass(frozen=True)
class Source:
    """Rows of one library. `columns`: name → type of the columns of `relation`, whose alias is `r`."""

    schema: str
    relation: str
    columns: Mapping[str, str]
    beside: str = ""
    """What follows the relation in FROM."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Column → the expression of its value, where the relation does not have it."""


Columns = Mapping[str, Mapping[str, str]]
"""View → column → type."""


@dataclass(frozen=True)
class View:
    """One view: its description and its SELECT."""

    table: Table
    rows: str

    @property
    def columns(self) -> dict[str, str]:
        """Name → type."""
        return {column.name: sql_type(column) for column in self.table.columns}


def make_views(session: Session, schemas: TenantSchemas, views: str) -> None:
    """Make the views of a library and those in the schema `views` that are not as they should be, in the caller's transaction."""
    own_there, shared_there = columns_of(session, schemas.main), columns_of(session, views, kinds="v")
    own = _own_views(session, schemas)
    changed = [view for view in own if list(own_there.get(view.table.name, {}).items()) != list(view.columns.items())]
    unfit = [view.table.name for view in changed if not _extends(view.columns, own_there.get(view.table.name, {}))]
    if unfit:
        _drop_views(session, views, shared_there)
        session.run(f"DROP VIEW {', '.join(quoted(schemas.main, name) for name in unfit)}")
        shared_there = {}
    for view in changed:
        session.run(*_create(schemas.main, view))
    _make_shared_views(session, views, shared_there)


def _own_views(session: Session, schemas: TenantSchemas) -> list[View]:
    """The newest rows and the history of each table of a library."""
    kept = columns_of(session, schemas.main)
    observed = read_observed(session, [schemas.main])
    made = list[View]()
    for name, table in tables_among(kept).items():
        if rows_name(name) not in kept:
            continue
        newest, history = table_views(with_observed(table, observed))
        expressions = {"tenant": literal(schemas.tenant) + "::text", "snapshot": "n.snapshot"}
        for view, relations in ((newest, own_rows), (history, history_rows)):
            sources = [
                Source(schemas.main, relation, kept[rows_name(name)], beside, expressions)
                for relation, beside in relations(schemas.main, name)
            ]
            made.append(View(view, _union(view, sources)))
    return made


def _make_shared_views(session: Session, schema: str, view_columns: Columns) -> None:
    """The views over all libraries; those that need another come after it."""
    sources: dict[str, list[Source]] = {}
    for tenant in tenants_in_database(session):
        for relation, columns in columns_of(session, tenant.main).items():
            sources.setdefault(relation, []).append(Source(tenant.main, relation, columns))
    observed = read_observed(session, [source.schema for source in sources.get(OBSERVED_COLUMNS, ())])
    views = list(_shared_views(sources, observed, view_columns))
    if any(not _extends(view.columns, view_columns.get(view.table.name, {})) for view in views):
        _drop_views(session, schema, view_columns)
        view_columns = {}
    used, has_new = _schemas_used(session, schema), any(view.table.name not in view_columns for view in views)
    statements = [f"SET LOCAL search_path = {quoted(schema)}, pg_catalog"]
    for view in views:
        name = view.table.name
        schemas = {source.schema for source in sources.get(name, ())}
        is_changed = list(view_columns.get(name, {})) != list(view.columns) or schemas - used.get(name, set())
        if is_changed or (view.table == TABLES_READ and has_new):
            statements += _create(schema, view)
    if has_new:  # dropped views take functions with them
        statements += _functions(schema, tables_among(sources))
    session.run(*statements, "SET LOCAL search_path = pg_catalog")


def _shared_views(
    sources: Mapping[str, Sequence[Source]], observed: ObservedOf, view_columns: Columns
) -> Iterator[View]:
    described = tables_among(sources)
    tables = [
        with_observed(table, observed, view_columns.get(name, ())).impersonal for name, table in described.items()
    ]
    for view in (SNAPSHOTS, *(view for table in tables for view in table_views(table))):
        yield View(view, _union(view, sources.get(view.name, ())))
    yield View(TABLES_READ, tables_read_rows(_resources(described)))
    for resource, (records, *_) in STAGED.items():
        shown = with_observed(records, observed, view_columns.get(records.name, ())).impersonal
        gone = deleted_view(shown)
        names = ", ".join(quoted(column.name) for column in gone.columns)
        yield View(gone, f"SELECT {names} FROM ({deleted_rows(shown, resource)}) AS gone")  # noqa: S608  names of ours


def _schemas_used(session: Session, schema: str) -> dict[str, set[str]]:
    """View → the schemas of what it selects from."""
    rows = session.rows(
        """SELECT DISTINCT shown.relname, used_schema.nspname
           FROM pg_rewrite AS rule JOIN pg_class AS shown ON shown.oid = rule.ev_class
           JOIN pg_depend AS needs ON needs.objid = rule.oid AND needs.classid = 'pg_rewrite'::regclass
           JOIN pg_class AS used ON used.oid = needs.refobjid AND needs.refclassid = 'pg_class'::regclass
           JOIN pg_namespace AS used_schema ON used_schema.oid = used.relnamespace
           WHERE shown.relnamespace = %s::text::regnamespace""",
        quoted(schema),
    )
    used: dict[str, set[str]] = {}
    for view, name in rows:
        used.setdefault(view, set()).add(name)
    return used


def _create(schema: str, view: View) -> Iterator[str]:
    yield f"CREATE OR REPLACE VIEW {quoted(schema, view.table.name)} AS {view.rows}"
    yield from comments("VIEW", schema, view.table.name, view.table.comment, view.table.columns)


def _resources(described: Iterable[str]) -> list[str]:
    """All resources, and the lists at addresses of their own that have one of these tables."""
    return [*STAGED, *(name for name in described if parent_of(name))]


def _functions(schema: str, described: Iterable[str]) -> Iterator[str]:
    yield _sql("json_keys").format(schema=quoted(schema))
    for resource in _resources(described):
        for table in tables_of(resource):
            yield _sql("as_of").format(schema=quoted(schema), table=table.name, resource=resource)


def _drop_views(session: Session, schema: str, existing: Iterable[str]) -> None:
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
    if column.name in source.given:
        return f"{source.given[column.name]} AS {name}"
    if column.name == SNAPSHOT_AT.name and "snapshot" in source.given:
        return f"({source.given['snapshot']})::{kind} AS {name}"
    own = source.columns.get(column.name)
    if own is None:
        return f"NULL::{kind} AS {name}"
    if own == kind:
        return f"r.{name}"
    if column.json:
        return f"to_jsonb(r.{name}) AS {name}"
    return f"(r.{name} #>> '{{}}')::{kind} AS {name}" if own == "jsonb" else f"r.{name}::{kind} AS {name}"


def _sql(name: str) -> str:
    return resources.files("sql").joinpath("postgres", f"{name}.sql").read_text(encoding="utf-8")
