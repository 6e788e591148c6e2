"""Moves the state of a data folder into the database that several machines share: whole or not at all.

The journal is copied in one transaction of the database. Then the file says in one of its own that the state has left, and whoever opens it
is refused; until that commit it has the state. A move that was stopped between the two is repeated with the same command, which finds the
same journal in the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from pipelines.errors import StorageError
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import MARGIN, WINDOW_SECONDS, Budget
from pipelines.settings.addresses import library_key
from pipelines.settings.settings import Settings
from pipelines.state.opening import local_state, postgres_state
from pipelines.state.store import Session, Store
from pipelines.state.tables import JOURNAL_COLUMNS
from pipelines.store.snapshots.leases import REMOVAL
from pipelines.store.stores import open_data

_BATCH = 1000
"""Rows that are in memory at once."""

_COLUMNS = ", ".join(JOURNAL_COLUMNS)


@dataclass(frozen=True)
class MovedState:
    """What was moved, and from where to where: the writes of the journal."""

    origin: str
    destination: str
    writes: int


def move_state(settings: Settings, clock: Clock | None = None) -> MovedState:
    """Move the state, while no run is at work on any tenant.

    Raises `TenantBusyError` where one is, and `StorageError` where the database has another journal of these libraries.
    """
    clock = clock or SystemClock()
    data = open_data(replace(settings, state="local"))
    local, shared = local_state(settings), postgres_state(settings)
    with ExitStack() as stack:
        stack.callback(shared.close)
        for tenant in (*sorted(settings.tenants), REMOVAL):
            stack.enter_context(data.lease(tenant))
            stack.enter_context(shared.lease(tenant, data.objects.address))
        old, new = (stack.enter_context(closing(state.open(clock, durable=True))) for state in (local, shared))
        with old.transaction() as origin:
            for library, seconds in _used_up(old, origin):
                with closing(Budget(shared, library, 1, clock)) as budget:
                    budget.pause(seconds)
            with new.transaction() as destination:
                writes = sum(_copied(origin, destination, target, shared.place) for target in _targets(origin))
            _leave(origin, shared.place)
    return MovedState(local.place, shared.place, writes)


def _used_up(store: Store, session: Session) -> list[tuple[str, float]]:
    """Libraries that no request may be sent to for some seconds: the service asked for that, or some of their budget is used."""
    pauses = []
    for library, paused_until in session.execute("SELECT library, paused_until FROM budget_libraries").fetchall():
        now = store.moment(session, library).now
        used = session.execute(
            "SELECT 1 FROM budget_slots WHERE library = ? AND free_at > ?", (library, now)
        ).fetchone()
        pauses.append((library, max(paused_until - now, WINDOW_SECONDS + MARGIN if used else 0.0)))
    return [(library, seconds) for library, seconds in pauses if seconds > 0]


def _targets(session: Session) -> list[str]:
    return [target for (target,) in session.execute("SELECT DISTINCT target FROM migration_writes").fetchall()]


def _copied(origin: Session, destination: Session, target: str, place: str) -> int:
    """Copy the journal of a library in its order, unless the same one is there; returns the number of its rows. They get new numbers."""
    if library_key(target) in map(library_key, _targets(destination)):
        if any(rows != copied for rows, copied in zip_longest(_journal(origin, target), _journal(destination, target))):
            raise StorageError(
                f"{place} has another journal of writes to {target} already, so that this one cannot be moved there: nobody could tell "
                "what was written twice. Nothing was changed. Use another database, or go on with the state that is there."
            )
        return sum(map(len, _journal(origin, target)))
    marks, count = ", ".join("?" * len(JOURNAL_COLUMNS)), 0
    for rows in _journal(origin, target):
        destination.executemany(f"INSERT INTO migration_writes ({_COLUMNS}) VALUES ({marks})", rows)  # noqa: S608
        count += len(rows)
    return count


def _journal(session: Session, target: str) -> Iterator[list[tuple[Any, ...]]]:
    """Yields the rows of a library's journal in their order, some at a time."""
    query = f"SELECT number, {_COLUMNS} FROM migration_writes WHERE target = ? AND number > ? ORDER BY number LIMIT {_BATCH}"  # noqa: S608
    number = 0
    while rows := session.execute(query, (target, number)).fetchall():
        yield [row[1:] for row in rows]
        number = rows[-1][0]


def _leave(origin: Session, place: str) -> None:
    """Say that the state is elsewhere from now on. Who has the file open is granted nothing any more."""
    for table in ("budget_slots", "budget_libraries"):
        origin.execute(f"DELETE FROM {table}")  # noqa: S608
    origin.execute("INSERT INTO state_moved (place) VALUES (?)", (place,))
