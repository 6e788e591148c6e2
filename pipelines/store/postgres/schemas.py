"""Bookferry's schemas in the database: one per library, one to load into, and one with the views over all libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.errors import ConfigurationError
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.definitions import fitting_name
from pipelines.store.postgres.server import Session

_RESERVED = re.compile(r"pg_|public$|information_schema$")
"""Schema names that Postgres uses or reserves."""

_MARK = re.compile(r"Bookferry keeps (.+?) here")


@dataclass(frozen=True)
class TenantSchemas:
    """The schema `main` with the tables of a tenant, and the schema `loading` for new ones."""

    tenant: str
    main: str

    @property
    def loading(self) -> str:
        """The schema for new tables. Anything in it before a load is a leftover."""
        return fitting_name(f"{self.main}_loading")


def tenant_schemas(tenant: str, views: str) -> TenantSchemas:
    """The schemas of a tenant. `main` has the tenant's name, unless the views or Postgres itself use that name."""
    is_taken = tenant == views or _RESERVED.match(tenant)
    return TenantSchemas(tenant, fitting_name(f"bookferry_{tenant}" if is_taken else tenant))


def prepare_tenant_schemas(session: Session, schemas: TenantSchemas) -> None:
    """Create the schemas of a tenant; the one to load into is empty."""
    _claim(session, schemas.main, f"the library {schemas.tenant}")
    clear_loading(session, schemas)
    _claim(session, schemas.loading, f"an unfinished load of {schemas.tenant}")


def clear_loading(session: Session, schemas: TenantSchemas) -> None:
    """Drop what an unfinished load has left."""
    if _mark(session, schemas.loading) == f"an unfinished load of {schemas.tenant}":
        session.run(f"DROP SCHEMA {quoted(schemas.loading)} CASCADE")


def prepare_views_schema(session: Session, views: str) -> None:
    """Create the schema with the views over all tenants."""
    _claim(session, views, "views over all libraries")


def tenants_in_database(session: Session) -> list[TenantSchemas]:
    """Every tenant with a schema in this database, on whichever machine it was loaded."""
    rows = session.rows("SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace ORDER BY nspname")
    marks = [(name, _MARK.match(comment or "")) for name, comment in rows]
    return [
        TenantSchemas(mark[1].removeprefix("the library "), name)
        for name, mark in marks
        if mark and mark[1].startswith("the library ")
    ]


def _mark(session: Session, schema: str) -> str | None:
    """The purpose of a schema, from its comment; None where there is no such schema, empty where it is not Bookferry's."""
    rows = session.rows("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", schema)
    if not rows:
        return None
    match = _MARK.match(rows[0][0] or "")
    return match[1] if match else ""


def _claim(session: Session, schema: str, what: str) -> None:
    mark = _mark(session, schema)
    if mark == what:
        return
    if mark is not None:
        owner = f"Bookferry keeps {mark} there" if mark else "Bookferry did not make it"
        raise ConfigurationError(
            f"The database has a schema {quoted(schema)} already, and {owner}, so it is left alone. Rename that schema, give the tenant "
            "another name in bookferry.toml, or name another `schema` for the views in [postgres]."
        )
    with session.transaction():
        session.run(
            f"CREATE SCHEMA {quoted(schema)}",
            f"COMMENT ON SCHEMA {quoted(schema)} IS {literal(f'Bookferry keeps {what} here: it makes, replaces and drops its tables.')}",
        )


def columns_of(
    session: Session, schema: str, relations: Iterable[str] | None = None, kinds: str = "rv"
) -> dict[str, dict[str, str]]:
    """Relation → column → type, in column order, for the relations that exist, by default all. `kinds`: r and v for tables and views."""
    names = None if relations is None else [*relations]
    rows = session.rows(
        """SELECT relname, attname, format_type(atttypid, atttypmod)
           FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
           WHERE relnamespace = to_regnamespace(%s) AND (%s::text[] IS NULL OR relname = ANY(%s)) AND relkind::text = ANY(%s)
             AND attnum > 0 AND NOT attisdropped
           ORDER BY relname, attnum""",
        quoted(schema),
        names,
        names,
        list(kinds),
    )
    columns: dict[str, dict[str, str]] = {}
    for relation, column, kind in rows:
        columns.setdefault(relation, {})[column] = kind
    return columns
