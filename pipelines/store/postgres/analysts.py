"""The role `bookferry_analyst`: may read all that is not personal, and nothing else. Whom it is granted to is the administrator's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg

from pipelines.records.tables.description import Table
from pipelines.store.parquet import quoted
from pipelines.store.postgres.definitions import listed, staged_columns
from pipelines.store.postgres.server import Session

ROLE = "bookferry_analyst"

WITHOUT = (
    f"There is no role {ROLE}, and this user may not create one: who may runs CREATE ROLE {ROLE} NOLOGIN, and the next load grants it what "
    "analysts read."
)


def prepare_role(session: Session) -> bool:
    """Make the role where it is missing; whether it is there."""
    if _exists(session):
        return True
    try:
        session.run(f"CREATE ROLE {ROLE} NOLOGIN")
    except psycopg.errors.InsufficientPrivilege:
        return False
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):  # another load was quicker
        pass
    return True


def _exists(session: Session) -> bool:
    return bool(session.value("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)", ROLE))


def grants_on_table(schema: str, name: str, table: Table) -> Iterator[str]:
    """Reading a table, without its personal columns. What default privileges gave beside is taken back where there are such columns."""
    relation = quoted(schema, name)
    impersonal = table.impersonal
    if impersonal == table:
        yield f"GRANT SELECT ON {relation} TO {ROLE}"
        return
    yield f"REVOKE ALL ON {relation} FROM PUBLIC, {ROLE}"
    columns = listed(tuple(column.name for column in staged_columns(impersonal)))
    yield f"GRANT SELECT ({columns}) ON {relation} TO {ROLE}"


def grants_on_schemas(schemas: Sequence[str], views: str) -> Iterator[str]:
    """Finding the tables of tenants, and all of the views, which show nothing personal."""
    yield f"GRANT USAGE ON SCHEMA {', '.join(map(quoted, (*schemas, views)))} TO {ROLE}"
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {quoted(views)} TO {ROLE}"
