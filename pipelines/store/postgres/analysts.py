"""The role `bookferry_analyst`, which may read the views over all libraries. The administrator decides who gets it."""

from __future__ import annotations

import psycopg

from pipelines.store.parquet import quoted
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


def grant(session: Session, main: str, views: str) -> None:
    """Let the role read the schema `views`, without personal columns, and nothing in the schema `main` of a library, which has them."""
    session.run(
        f"GRANT USAGE ON SCHEMA {quoted(views)} TO {ROLE}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {quoted(views)} TO {ROLE}",
        f"REVOKE ALL ON SCHEMA {quoted(main)} FROM {ROLE}",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {quoted(main)} FROM {ROLE}",
    )
