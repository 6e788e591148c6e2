"""The role `bookferry_analyst`, which may read everything that is not personal. The administrator decides who gets it."""

from __future__ import annotations

import psycopg

from pipelines.store.catalogue import SNAPSHOTS, table_views
from pipelines.store.parquet import quoted
from pipelines.store.postgres.definitions import column_list, tables_among
from pipelines.store.postgres.schemas import TenantSchemas, columns_of
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


def grant(session: Session, schemas: TenantSchemas, views: str) -> None:
    """Let the role read the views of a library, except its personal columns, and all of those in the schema `views`."""
    main, relations = schemas.main, columns_of(session, schemas.main)
    statements = [
        f"GRANT USAGE ON SCHEMA {quoted(main)}, {quoted(views)} TO {ROLE}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {quoted(views)} TO {ROLE}",
    ]
    readable = {view.name: view for table in tables_among(relations).values() for view in table_views(table)} | {
        SNAPSHOTS.name: SNAPSHOTS
    }
    for name in relations:
        view = readable.get(name)
        if view is not None and view.impersonal == view:
            statements.append(f"GRANT SELECT ON {quoted(main, name)} TO {ROLE}")
            continue
        statements.append(f"REVOKE ALL ON {quoted(main, name)} FROM PUBLIC, {ROLE}")
        if view is not None:
            columns = column_list(column.name for column in view.impersonal.columns)
            statements.append(f"GRANT SELECT ({columns}) ON {quoted(main, name)} TO {ROLE}")
    session.run(*statements)
