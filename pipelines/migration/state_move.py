"""Moves the state of this configuration's libraries from the data folder to the database, or back: whole or not at all.

1. The rows are copied in one transaction of the destination. It says of each library that its state is still arriving, and whoever opens
   it is refused.
2. The origin forgets the rows and says that they have left, in one transaction. Until this commit the origin has the state, and after it
   the destination.
3. The destination says that they have arrived.

A move that was stopped is repeated with the same command. Where the origin has the state still, the copy is made anew; where it has left
and not arrived, only the third step is lacking.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

from pipelines.errors import StorageError
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.settings.addresses import library_key
from pipelines.settings.settings import Settings
from pipelines.state.opening import libraries_of, local_state, postgres_state
from pipelines.state.store import Session, State, Store
from pipelines.state.tables import JOURNAL_COLUMNS
from pipelines.store.snapshots.leases import REMOVAL
from pipelines.store.stores import open_data

_BATCH = 1000
"""Rows that are in memory at once."""


@dataclass(frozen=True)
class MovedState:
    """What was moved. `finished`: an earlier move had done all but the last step."""

    origin: str
    destination: str
    libraries: tuple[str, ...]
    writes: int = 0
    finished: bool = False


class _Place(NamedTuple):
    """One end of the move."""

    state: State
    store: Store


def move_state(settings: Settings, to: str, clock: Clock | None = None) -> MovedState:
    """Move the state to `local` or `postgres`, while no run is at work on any tenant.

    Raises `TenantBusyError` where one is, and `StorageError` where the destination has entries of these libraries already.
    """
    clock = clock or SystemClock()
    data = open_data(replace(settings, state="local"))
    local, shared = local_state(settings, moving=True), postgres_state(settings, moving=True)
    origin, destination = (local, shared) if to == "postgres" else (shared, local)
    with ExitStack() as stack:
        stack.callback(shared.close)
        for tenant in (*sorted(settings.tenants), REMOVAL):
            stack.enter_context(data.lease(tenant))
            stack.enter_context(shared.lease(tenant, data.objects.address))
        old, new = (
            _Place(state, stack.enter_context(closing(state.open(clock, durable=True))))
            for state in (origin, destination)
        )
        libraries = _libraries(old, libraries_of(settings))
        move, writes = _unfinished(old, new, libraries), 0
        finished = move is not None
        if move is None:
            move = uuid4().hex
            for state in (origin, destination):
                for library in libraries:
                    Budget(state, library, 1, clock).close()  # the times of its row are right there now
            writes = _move(move, old, new, libraries)
        _arrive(new.store, move)
    return MovedState(origin.place, destination.place, libraries, writes, finished)


def _libraries(old: _Place, libraries: Collection[str]) -> tuple[str, ...]:
    """The libraries to move: those of the settings; of a file, all that it knows."""
    if not old.state.is_own:
        return tuple(sorted(libraries))
    with old.store.transaction() as session:
        rows = session.execute(
            "SELECT library FROM budget_libraries UNION SELECT target FROM migration_writes"
        ).fetchall()
    return tuple(sorted({*libraries, *(library_key(row[0]) for row in rows)}))


def _unfinished(old: _Place, new: _Place, libraries: Collection[str]) -> str | None:
    """The earlier move that had done all but its last step. Raises `StorageError` where the origin has no state to move."""
    with old.store.transaction() as old_db, new.store.transaction() as new_db:
        departed, arriving = _marks(old_db, libraries), _marks(new_db, libraries)
    if not departed:
        return None
    gone = {move for move, stage, _ in departed.values() if stage == "left"}
    if len(gone) == 1 and gone <= {move for move, stage, _ in arriving.values() if stage == "arriving"}:
        return gone.pop()
    place = next(iter(departed.values()))[2]
    raise StorageError(
        f"The state in {old.state.place} is not the valid one: it was moved to {place}, or a move from there was stopped. Nothing was "
        "changed. Move it the other way, or finish that move with the same command."
    )


def _move(move: str, old: _Place, new: _Place, libraries: Collection[str]) -> int:
    """The first two steps. The origin's transaction is open meanwhile, so that nobody writes there. Returns the number of writes."""
    with old.store.transaction() as old_db:
        old.state.exclude_writers(old_db)
        with new.store.transaction() as new_db:
            new.state.exclude_writers(new_db)
            stopped = [library for library, (_, stage, _) in _marks(new_db, libraries).items() if stage == "arriving"]
            _delete(new_db, "migration_writes", "target", stopped)
            if others := _named(new_db, "migration_writes", "target", libraries):
                raise StorageError(
                    f"{new.state.place} has a journal of writes to {others[0]} already, so that the one in {old.state.place} cannot be "
                    "moved there: nobody could tell what was written twice. Nothing was changed. Use another database, or go on with the "
                    "state that is there."
                )
            copied = _copy_rows(old_db, new_db, libraries)
            for library in libraries:
                _copy_budget(old.store, old_db, new.store, new_db, library)
            _mark(new_db, libraries, move, "arriving", old.state.place)
        for table, column in (
            ("migration_writes", "target"),
            ("budget_slots", "library"),
            ("budget_libraries", "library"),
        ):
            _delete(old_db, table, column, libraries)
        _mark(old_db, libraries, move, "left", new.state.place)
    return copied


def _mark(session: Session, libraries: Collection[str], move: str, stage: str, place: str) -> None:
    _delete(session, "state_moves", "library", libraries)
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    session.executemany(
        "INSERT INTO state_moves (library, move, stage, place, moved_at) VALUES (?, ?, ?, ?, ?)",
        [(library, move, stage, place, moment) for library in libraries],
    )


def _arrive(new: Store, move: str) -> None:
    with new.transaction() as session:
        session.execute("DELETE FROM state_moves WHERE move = ? AND stage = 'arriving'", (move,))


def _marks(session: Session, libraries: Collection[str]) -> dict[str, tuple[str, str, str]]:
    rows = session.execute("SELECT library, move, stage, place FROM state_moves").fetchall()
    return {library: (move, stage, place) for library, move, stage, place in rows if library in libraries}


def _named(session: Session, table: str, column: str, libraries: Collection[str]) -> list[str]:
    """The addresses in a column that are these libraries."""
    rows = session.execute(f"SELECT DISTINCT {column} FROM {table}").fetchall()  # noqa: S608  our own names
    return sorted(name for (name,) in rows if library_key(name) in libraries)


def _delete(session: Session, table: str, column: str, libraries: Collection[str]) -> None:
    for name in _named(session, table, column, libraries):
        session.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608


def _copy_rows(old_db: Session, new_db: Session, libraries: Collection[str]) -> int:
    """Copy the journals of these libraries in their order; returns the number of rows. They get new numbers."""
    names, marks = ", ".join(JOURNAL_COLUMNS), ", ".join("?" * len(JOURNAL_COLUMNS))
    copied = 0
    for target in _named(old_db, "migration_writes", "target", libraries):
        rows = old_db.execute(f"SELECT {names} FROM migration_writes WHERE target = ? ORDER BY number", (target,))  # noqa: S608
        while batch := rows.fetchmany(_BATCH):
            new_db.executemany(f"INSERT INTO migration_writes ({names}) VALUES ({marks})", batch)  # noqa: S608
            copied += len(batch)
    return copied


def _copy_budget(old: Store, old_db: Session, new: Store, new_db: Session, library: str) -> None:
    """Take the slots and the pause of a library along, by the seconds that are left of them."""
    now, then = old.moment(old_db, library).now, new.moment(new_db, library).now
    slots = old_db.execute("SELECT free_at FROM budget_slots WHERE library = ? AND free_at > ?", (library, now))
    moved = [(library, free_at - now + then) for (free_at,) in slots.fetchall()]
    if moved:
        new_db.executemany("INSERT INTO budget_slots (library, free_at) VALUES (?, ?)", moved)
    row: Any = old_db.execute("SELECT paused_until FROM budget_libraries WHERE library = ?", (library,)).fetchone()
    if row[0] > now:
        pause = {"now": then, "until": row[0] - now + then, "library": library}
        new_db.execute(
            "UPDATE budget_libraries SET paused_at = :now, paused_until = :until WHERE library = :library AND paused_until < :until",
            pause,
        )
