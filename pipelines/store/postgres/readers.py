"""Readers during a load: the transactions to wait for, and those that hold locks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from pipelines.errors import TemporaryError
from pipelines.store.postgres.postgres_errors import UNTOUCHED
from pipelines.store.postgres.server import Session

Transaction = tuple[str, int]
"""A transaction of another session: its virtual id, and the process id of that session."""

_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between two checks; the last one repeats."""


def transactions_before(session: Session) -> set[Transaction]:
    """The transactions that may still see the database as it was before this moment.

    A REPEATABLE READ transaction finds tables empty that were filled after it began. Of other users' sessions Postgres reveals only that
    they have a transaction, so each of these counts.
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
    """Wait until all of `before` have ended, as CREATE INDEX CONCURRENTLY does. Raises `TemporaryError` after so many seconds."""
    remaining, pauses = before, _pauses(seconds)
    while remaining := remaining & transactions_before(session):
        if not next(pauses):
            who = "; ".join(_describe(session, {pid for _, pid in remaining}))
            raise TemporaryError(
                f"The new tables are loaded, but not visible: after {seconds:g} seconds there was still a transaction that is older "
                f"than they are, and would find them empty ({who}). {UNTOUCHED}. When it has ended, run `bookferry stage`."
            )


def lock_holders(session: Session, schemas: Iterable[str]) -> list[str]:
    """The sessions with locks on tables and views of these schemas, a phrase each."""
    pids = session.rows(
        """SELECT DISTINCT locks.pid
           FROM pg_locks AS locks JOIN pg_class ON pg_class.oid = locks.relation
           JOIN pg_namespace AS schema ON schema.oid = pg_class.relnamespace
           WHERE locks.granted AND locks.pid <> pg_backend_pid() AND schema.nspname = ANY(%s)
             AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())""",
        list(schemas),
    )
    return _describe(session, {pid for (pid,) in pids})


def _describe(session: Session, pids: set[int]) -> list[str]:
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
    return "".join(character if character.isprintable() else "?" for character in text)[:60]


def _pauses(seconds: float) -> Iterator[bool]:
    """Each step sleeps and yields True; then only False."""
    until, pauses = time.monotonic() + seconds, iter(_PAUSES)
    while (now := time.monotonic()) < until:
        time.sleep(min(next(pauses, _PAUSES[-1]), until - now))
        yield True
    while True:
        yield False
