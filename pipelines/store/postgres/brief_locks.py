"""Statements that need tables or views for themselves for a moment: short tries, so that readers hardly wait, and who stands in the way."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import psycopg

from pipelines.errors import TemporaryError
from pipelines.state.postgres_errors import printable
from pipelines.store.postgres.postgres_errors import UNTOUCHED
from pipelines.store.postgres.server import Session

MOST_LOCK_MILLISECONDS = 400
"""Milliseconds in which a lock must be acquired: readers queue behind a waiting one. The server looks for deadlocks after a second."""

PAUSE = 0.4
"""Seconds between two tries, multiplied by a random factor, so that two loads do not collide again."""

VIEWS_LOCK = 0x626F6F6B76696577
"""Advisory lock of whoever changes views: those over all libraries are shared by all loads."""

T = TypeVar("T")


def briefly(session: Session, schemas: Iterable[str], seconds: float, work: Callable[[], T]) -> T:
    """Run `work` in a transaction, again for so many seconds while others hold locks. Raises `TemporaryError` that names them."""
    until = time.monotonic() + seconds
    while True:
        try:
            with session.transaction():
                session.run(
                    f"SET LOCAL lock_timeout = {MOST_LOCK_MILLISECONDS}",
                    f"SELECT pg_advisory_xact_lock({VIEWS_LOCK})",
                )
                return work()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if time.monotonic() >= until:
                raise lock_error(session, schemas, seconds, "Tables and views cannot be changed", "them") from None
            time.sleep(PAUSE * random.uniform(1, 2))  # noqa: S311  no secret


def lock_error(session: Session, schemas: Iterable[str], seconds: float, why: str, what: str) -> TemporaryError:
    """The error of a wait for locks on tables of these schemas, with those who hold them."""
    who = "; ".join(_lock_holders(session, schemas)) or "it has just ended"
    return TemporaryError(
        f"{why}: for {seconds:g} seconds a transaction held locks on {what} ({who}). {UNTOUCHED}. When it has ended, run `bookferry stage`."
    )


def _lock_holders(session: Session, schemas: Iterable[str]) -> list[str]:
    """The sessions with locks on tables and views of these schemas, a phrase each."""
    rows = session.rows(
        """SELECT DISTINCT pid, coalesce(usename, '?'), coalesce(application_name, ''), coalesce(state, ''),
                  to_char(coalesce(xact_start, query_start), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
           FROM pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid) JOIN pg_class ON pg_class.oid = locks.relation
           JOIN pg_namespace AS schema ON schema.oid = pg_class.relnamespace
           WHERE locks.granted AND pid <> pg_backend_pid() AND schema.nspname = ANY(%s)
             AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
           ORDER BY pid""",
        list(schemas),
    )
    return [
        ", ".join(
            filter(
                None, [f"process {pid}", f"user {user}", printable(application[:60]), state, since and f"since {since}"]
            )
        )
        for pid, user, application, state, since in rows
    ]
