"""The role `bookferry_analyst`, which may read everything that is not personal. The administrator decides who gets it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg

from pipelines.records.tables.description import Table
from pipelines.store.parquet import quoted
from pipelines.store.postgres.definitions import column_list, staged_columns
from pipelines.store.postgres.server import Session

ROLE = "bookferry_analyst"

ROLE_MISSING = (
    f"There is no role {ROLE}, and this user may not create one. Run CREATE ROLE {ROLE} NOLOGIN as a user who may; the next load then "
    "grants it what analysts read."
)


def prepare_role(session: Session) -> bool:
    """Create the role if it is missing. Returns whether it exists."""
    if session.value("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)", ROLE):
        return True
    try:
        session.run(f"CREATE ROLE {ROLE} NOLOGIN")
    except psycopg.errors.InsufficientPrivilege:
        return False
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):  # another load created it first
        pass
    return True


def may_read(session: Session, views: str) -> bool:
    """Whether the role reads every view of the schema `views`."""
    lacking = session.value(
        "SELECT count(*) FROM pg_class WHERE relnamespace = %s::text::regnamespace AND relkind = 'v' "
        "AND NOT has_table_privilege(%s, oid, 'SELECT')",
        quoted(views),
        ROLE,
    )
    return bool(lacking == 0)


def grants_on_table(schema: str, name: str, table: Table) -> Iterator[str]:
    """Grants on a table or view without its personal columns. Where it has some, grants by default privileges are revoked."""
    relation = quoted(schema, name)
    impersonal = table.impersonal
    if impersonal == table:
        yield f"GRANT SELECT ON {relation} TO {ROLE}"
        return
    yield from revoked_grants(schema, name)
    columns = column_list(tuple(dict.fromkeys(column.name for column in staged_columns(impersonal))))
    yield f"GRANT SELECT ({columns}) ON {relation} TO {ROLE}"


def revoked_grants(schema: str, name: str) -> Iterator[str]:
    """Revokes what default privileges granted on a table."""
    yield f"REVOKE ALL ON {quoted(schema, name)} FROM PUBLIC, {ROLE}"


def grants_on_schemas(schemas: Sequence[str], views: str) -> Iterator[str]:
    """Grants on the schemas of tenants, and on all views, which have no personal columns."""
    yield f"GRANT USAGE ON SCHEMA {', '.join(map(quoted, (*schemas, views)))} TO {ROLE}"
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {quoted(views)} TO {ROLE}"
