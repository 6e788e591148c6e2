"""The schemas that are ours: one for each library, one to load into, and the one with views over all libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.errors import ConfigurationError
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.definitions import fitting, history_name
from pipelines.store.postgres.server import Session

_RESERVED = re.compile(r"pg_|public$|information_schema$")
"""What Postgres has, or does not let anybody have."""

_MARK = re.compile(r"Bookferry keeps (.+?) here")


@dataclass(frozen=True)
class Place:
    """Where the tables of a tenant are, and where they are loaded."""

    tenant: str
    schema: str

    @property
    def loading(self) -> str:
        """The schema in which fresh tables grow; what is left in it is of a load that was broken off."""
        return fitting(f"{self.schema}_loading")


def place_of(tenant: str, views: str) -> Place:
    """The schema of a tenant has its name, unless the views over all tenants or Postgres itself have that."""
    taken = tenant == views or _RESERVED.match(tenant)
    return Place(tenant, fitting(f"bookferry_{tenant}" if taken else tenant))


def prepare_place(session: Session, place: Place) -> None:
    """The schemas of a tenant, the one to load into empty."""
    _claim(session, place.schema, f"the library {place.tenant}")
    clear_loading(session, place)
    _claim(session, place.loading, f"an unfinished load of {place.tenant}")


def clear_loading(session: Session, place: Place) -> None:
    """Remove what an unfinished load has left."""
    if _mark(session, place.loading) == f"an unfinished load of {place.tenant}":
        session.run(f"DROP SCHEMA {quoted(place.loading)} CASCADE")


def prepare_views_schema(session: Session, views: str) -> None:
    """The schema with the views over all tenants."""
    _claim(session, views, "views over all libraries")


def tenants_here(session: Session) -> list[Place]:
    """Every tenant that has a schema in this database, whoever loaded it."""
    rows = session.rows("SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace ORDER BY nspname")
    marks = [(name, _MARK.match(comment or "")) for name, comment in rows]
    return [
        Place(mark[1].removeprefix("the library "), name)
        for name, mark in marks
        if mark and mark[1].startswith("the library ")
    ]


def _mark(session: Session, schema: str) -> str | None:
    """What a schema says that we keep in it; None where there is no such schema, empty where it is not ours."""
    rows = session.rows("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", schema)
    if not rows:
        return None
    found = _MARK.match(rows[0][0] or "")
    return found[1] if found else ""


def _claim(session: Session, schema: str, what: str) -> None:
    mark = _mark(session, schema)
    if mark == what:
        return
    if mark is not None:
        holds = f"what Bookferry keeps there is {mark}" if mark else "Bookferry did not make it"
        raise ConfigurationError(
            f"The database has a schema {quoted(schema)} already, and {holds}, so it is left alone. Rename that schema, give the tenant "
            "another name in bookferry.toml, or name another `schema` for the views in [postgres]."
        )
    with session.transaction():
        session.run(
            f"CREATE SCHEMA {quoted(schema)}",
            f"COMMENT ON SCHEMA {quoted(schema)} IS {literal(f'Bookferry keeps {what} here: it makes, replaces and drops its tables.')}",
        )


Held = dict[str, dict[str, str]]
"""Table → snapshot → name of the table that holds it."""


def held(session: Session, schema: str) -> Held:
    """What a tenant's schema holds."""
    rows = session.rows(
        """SELECT parent.relname, child.relname, pg_get_expr(child.relpartbound, child.oid)
           FROM pg_inherits
           JOIN pg_class AS parent ON parent.oid = inhparent AND parent.relkind = 'p'
           JOIN pg_class AS child ON child.oid = inhrelid
           WHERE parent.relnamespace = %s::text::regnamespace
           ORDER BY 1, 3""",
        quoted(schema),
    )
    found: Held = {}
    for parent, child, bound in rows:
        found.setdefault(parent.removesuffix(history_name("")), {})[bound.split("'")[1]] = child
    return found


def columns_of(session: Session, schema: str, relations: Iterable[str]) -> dict[str, dict[str, str]]:
    """Relation → column → type, in their order; of those that exist."""
    rows = session.rows(
        """SELECT relname, attname, format_type(atttypid, atttypmod)
           FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
           WHERE relnamespace = %s::text::regnamespace AND relname = ANY(%s) AND attnum > 0 AND NOT attisdropped
           ORDER BY relname, attnum""",
        quoted(schema),
        list(relations),
    )
    found: dict[str, dict[str, str]] = {}
    for relation, column, kind in rows:
        found.setdefault(relation, {})[column] = kind
    return found
