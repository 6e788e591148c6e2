"""People who read while a load wants to change tables: whom to wait for, and who is in the way."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from pipelines.errors import TemporaryError
from pipelines.store.postgres.postgres_errors import KEPT
from pipelines.store.postgres.server import Session

Transaction = tuple[str, int]
"""A transaction of another session: its virtual id, and the process that works for that session."""

_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between two looks; the last one stays."""


def transactions_before(session: Session) -> set[Transaction]:
    """The transactions that may still see the database as it was before this moment.

    In one with REPEATABLE READ, tables that were filled after it began are empty. Postgres shows us of other users' sessions only that
    they have a transaction, so each of theirs counts.
    """
    rows = session.rows(
        """SELECT locks.virtualxid, locks.pid
           FROM pg_locks AS locks JOIN pg_stat_activity AS activity ON activity.pid = locks.pid
           WHERE locks.locktype = 'virtualxid' AND locks.mode = 'ExclusiveLock' AND locks.pid <> pg_backend_pid()
             AND activity.datname = current_database() AND coalesce(activity.backend_type, 'client backend') = 'client backend'
             AND (activity.backend_xmin IS NOT NULL
                  OR NOT pg_has_role(activity.usesysid, 'USAGE') AND NOT pg_has_role('pg_read_all_stats', 'USAGE'))"""
    )
    return {(str(transaction), pid) for transaction, pid in rows}


def wait_for_older(session: Session, before: set[Transaction], seconds: float) -> None:
    """Wait until all of `before` have ended, as CREATE INDEX CONCURRENTLY does; a `TemporaryError` after so many seconds."""
    left, pauses = before, _pauses(seconds)
    while left := left & transactions_before(session):
        if not next(pauses):
            who = "; ".join(_described(session, {pid for _, pid in left}))
            raise TemporaryError(
                f"The new tables are loaded, but were not shown: after {seconds:g} seconds there was still a transaction that is older "
                f"than they are, and would have found them empty ({who}). {KEPT}. When it has ended, run `bookferry stage`; `wait_seconds` "
                "in [postgres] of bookferry.toml says how long to wait."
            )


def in_the_way(session: Session, schemas: Iterable[str]) -> list[str]:
    """Who holds locks on tables and views of these schemas, a phrase each."""
    pids = session.rows(
        """SELECT DISTINCT locks.pid
           FROM pg_locks AS locks JOIN pg_class ON pg_class.oid = locks.relation
           JOIN pg_namespace AS schema ON schema.oid = pg_class.relnamespace
           WHERE locks.granted AND locks.pid <> pg_backend_pid() AND schema.nspname = ANY(%s)
             AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())""",
        list(schemas),
    )
    return _described(session, {pid for (pid,) in pids})


def _described(session: Session, pids: set[int]) -> list[str]:
    rows = session.rows(
        """SELECT pid, coalesce(usename, '?'), coalesce(application_name, ''), coalesce(state, ''),
                  to_char(coalesce(xact_start, query_start), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
           FROM pg_stat_activity WHERE pid = ANY(%s) ORDER BY pid""",
        list(pids),
    )
    return [
        ", ".join(
            [
                f"process {pid}",
                f"user {user}",
                *([name] if (name := _one_line(application)) else []),
                *([state] if state else []),
                *([f"since {since}"] if since else []),
            ]
        )
        for pid, user, application, state, since in rows
    ]


def _one_line(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:60]


def _pauses(seconds: float) -> Iterator[bool]:
    """Each step is a pause; False once they are used up."""
    until, pauses = time.monotonic() + seconds, iter(_PAUSES)
    while (now := time.monotonic()) < until:
        time.sleep(min(next(pauses, _PAUSES[-1]), until - now))
        yield True
    while True:
        yield False
