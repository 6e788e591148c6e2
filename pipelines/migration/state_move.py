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
from typing import Any
from uuid import uuid4

from pipelines.errors import StorageError
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.settings.addresses import library_key
from pipelines.settings.settings import Settings
from pipelines.state.opening import libraries_of, local_state, postgres_state
from pipelines.state.store import Session, State, Store
from pipelines.state.tables import MOVED
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


def move_state(settings: Settings, to: str, clock: Clock | None = None) -> MovedState:
    """Move the state to `local` or `postgres`, while no run is at work on any tenant.

    Raises `TenantBusyError` where one is, and `StorageError` where the destination has entries of these libraries already.
    """
    clock = clock or SystemClock()
    data = open_data(replace(settings, state="local"))
    local, shared = local_state(settings, moving=True), postgres_state(settings, moving=True)
    with ExitStack() as leases:
        leases.callback(shared.close)
        for tenant in (*sorted(settings.tenants), REMOVAL):
            leases.enter_context(data.lease(tenant))
            leases.enter_context(shared.lease(tenant, data.objects.address))
        origin, destination = (local, shared) if to == "postgres" else (shared, local)
        return _Move(origin, destination, libraries_of(settings), clock).run()


class _Move:
    def __init__(self, origin: State, destination: State, libraries: Collection[str], clock: Clock) -> None:
        self._origin = origin
        self._destination = destination
        self._libraries = libraries
        self._clock = clock
        self._name = uuid4().hex

    def run(self) -> MovedState:
        with (
            closing(self._origin.open(self._clock, what="The state", durable=True)) as origin,
            closing(self._destination.open(self._clock, what="The state", durable=True)) as destination,
        ):
            libraries = self._known(origin)
            if (copied := self._copied(origin, destination, libraries)) is not None:
                _arrive(destination, copied)
                return MovedState(self._origin.place, self._destination.place, libraries, finished=True)
            self._prepare_budgets(libraries)
            writes = self._copy(origin, destination, libraries)
            _arrive(destination, self._name)
        return MovedState(self._origin.place, self._destination.place, libraries, writes)

    def _known(self, origin: Store) -> tuple[str, ...]:
        """The libraries to move: those of the settings; of a file, all that it knows."""
        with origin.transaction() as session:
            keys = {library_key(row[0]) for row in session.execute("SELECT library FROM budget_libraries").fetchall()}
            for table in MOVED:
                rows = session.execute(f"SELECT DISTINCT target FROM {table}").fetchall()  # noqa: S608  our own names
                keys |= {library_key(row[0]) for row in rows}
        every = keys if self._origin.is_own else set[str]()
        return tuple(sorted({*self._libraries, *every}))

    def _copied(self, origin: Store, destination: Store, libraries: tuple[str, ...]) -> str | None:
        """The earlier move that had done all but its last step. Raises `StorageError` where the origin has no state to move."""
        departed, arriving = _marks(origin, libraries), _marks(destination, libraries)
        if not departed:
            return None
        gone = {move for move, stage, _ in departed.values() if stage == "left"}
        waiting = {move for move, stage, _ in arriving.values() if stage == "arriving"}
        if len(gone) == 1 and gone <= waiting:
            return gone.pop()
        place = next(iter(departed.values()))[2]
        raise StorageError(
            f"The state in {self._origin.place} is not the valid one: it was moved to {place}, or a move from there was stopped. Nothing "
            "was changed. Move it the other way, or finish that move with the same command."
        )

    def _prepare_budgets(self, libraries: tuple[str, ...]) -> None:
        """Make the budgets' rows at both ends, with times that are right there now."""
        for state in (self._origin, self._destination):
            for library in libraries:
                Budget(state, library, 1, self._clock).close()

    def _copy(self, origin: Store, destination: Store, libraries: tuple[str, ...]) -> int:
        """The first two steps. The origin's transaction is open meanwhile, so that nobody writes there."""
        with origin.transaction() as origin_db:
            self._origin.exclude_writers(origin_db)
            with destination.transaction() as destination_db:
                self._destination.exclude_writers(destination_db)
                self._clear_arriving(destination_db, libraries)
                copied = sum(_copy_rows(origin_db, destination_db, table, libraries) for table in MOVED)
                for library in libraries:
                    _copy_budget(origin, origin_db, destination, destination_db, library)
                self._mark(destination_db, libraries, "arriving", self._origin.place)
            for table in MOVED:
                _delete(origin_db, table, "target", libraries)
            for table in ("budget_slots", "budget_libraries"):
                _delete(origin_db, table, "library", libraries)
            self._mark(origin_db, libraries, "left", self._destination.place)
        return copied

    def _clear_arriving(self, db: Session, libraries: tuple[str, ...]) -> None:
        """Remove what a stopped move copied. Raises `StorageError` where other entries of these libraries are there."""
        stages = {library: stage for library, (_, stage, _) in _marks_in(db, libraries).items()}
        arriving = [library for library in libraries if stages.get(library) == "arriving"]
        for table in MOVED:
            _delete(db, table, "target", arriving)
            targets = _targets(db, table, libraries)
            if targets:
                raise StorageError(
                    f"{self._destination.place} has a journal of writes to {targets[0]} already, so that the one in {self._origin.place} "
                    "cannot be moved there: nobody could tell what was written twice. Nothing was changed. Use another "
                    "database, or go on with the state that is there."
                )

    def _mark(self, session: Session, libraries: tuple[str, ...], stage: str, place: str) -> None:
        _delete(session, "state_moves", "library", libraries)
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        session.executemany(
            "INSERT INTO state_moves (library, move, stage, place, moved_at) VALUES (?, ?, ?, ?, ?)",
            [(library, self._name, stage, place, moment) for library in libraries],
        )


def _arrive(destination: Store, move: str) -> None:
    with destination.transaction() as session:
        session.execute("DELETE FROM state_moves WHERE move = ? AND stage = 'arriving'", (move,))


def _marks(store: Store, libraries: tuple[str, ...]) -> dict[str, tuple[str, str, str]]:
    with store.transaction() as session:
        return _marks_in(session, libraries)


def _marks_in(session: Session, libraries: tuple[str, ...]) -> dict[str, tuple[str, str, str]]:
    rows = session.execute("SELECT library, move, stage, place FROM state_moves").fetchall()
    return {library: (move, stage, place) for library, move, stage, place in rows if library in libraries}


def _targets(session: Session, table: str, libraries: Collection[str]) -> list[str]:
    """The addresses in `target` that are these libraries."""
    rows = session.execute(f"SELECT DISTINCT target FROM {table}").fetchall()  # noqa: S608  our own names
    return sorted(target for (target,) in rows if library_key(target) in libraries)


def _delete(session: Session, table: str, column: str, libraries: Collection[str]) -> None:
    rows = session.execute(f"SELECT DISTINCT {column} FROM {table}").fetchall()  # noqa: S608  our own names
    names = [(name,) for (name,) in rows if library_key(name) in libraries]
    if names:
        session.executemany(f"DELETE FROM {table} WHERE {column} = ?", names)  # noqa: S608


def _copy_rows(origin_db: Session, destination_db: Session, table: str, libraries: Collection[str]) -> int:
    """Copy the rows of these libraries in their order; returns their number. They get new numbers."""
    columns = MOVED[table]
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    copied = 0
    for target in _targets(origin_db, table, libraries):
        rows = origin_db.execute(f"SELECT {names} FROM {table} WHERE target = ? ORDER BY number", (target,))  # noqa: S608
        while batch := rows.fetchmany(_BATCH):
            destination_db.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", batch)  # noqa: S608
            copied += len(batch)
    arrived = sum(
        destination_db.execute(f"SELECT count(*) FROM {table} WHERE target = ?", (target,)).fetchone()[0]  # noqa: S608
        for target in _targets(destination_db, table, libraries)
    )
    if arrived != copied:
        raise StorageError(f"{copied:,} rows of {table} were copied and {arrived:,} arrived. Nothing was changed.")
    return copied


def _copy_budget(origin: Store, origin_db: Session, destination: Store, destination_db: Session, library: str) -> None:
    """Take the slots and the pause of a library along, by the seconds that are left of them."""
    now, then = origin.moment(origin_db, library).now, destination.moment(destination_db, library).now
    slots = origin_db.execute("SELECT free_at FROM budget_slots WHERE library = ? AND free_at > ?", (library, now))
    moved = [(library, free_at - now + then) for (free_at,) in slots.fetchall()]
    if moved:
        destination_db.executemany("INSERT INTO budget_slots (library, free_at) VALUES (?, ?)", moved)
    row: Any = origin_db.execute("SELECT paused_until FROM budget_libraries WHERE library = ?", (library,)).fetchone()
    if row[0] > now:
        pause = {"now": then, "until": row[0] - now + then, "library": library}
        destination_db.execute(
            "UPDATE budget_libraries SET paused_at = :now, paused_until = :until WHERE library = :library AND paused_until < :until",
            pause,
        )
