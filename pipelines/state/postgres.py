"""The state in a Postgres database, which several machines share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import Any, cast

import psycopg

from pipelines.errors import StorageError
from pipelines.state.postgres_errors import statement_error
from pipelines.state.server import IDLE_SECONDS, Server, ServerFacts, Statements
from pipelines.state.server_time import ServerTime
from pipelines.state.session import ServerSession, lock_number
from pipelines.state.statements import for_postgres, values_for_postgres
from pipelines.state.store import Moment, Session, Ticking

BUSY = (
    "Another run is at work on '{tenant}' at this moment: {{owner}}. One library has one run at a time. Wait until it ends, then run this "
    f"again if you still need to. The lease of a machine that was switched off ends by itself within {IDLE_SECONDS} seconds."
)

_STREAMED_ROWS = 1000


class PostgresState:
    """The state at the address of a database. Nothing is opened yet; all stores and leases of this object share one session.

    `libraries`: those whose state must not have been moved away. `idle_seconds`: after so much silence the server takes the leases.
    `beat_seconds`: a session with leases says something that often. `server_clock` and `machine` are for tests.
    """

    is_own = False

    def __init__(
        self,
        address: str,
        *,
        libraries: Collection[str] = (),
        idle_seconds: float = IDLE_SECONDS,
        beat_seconds: float = IDLE_SECONDS / 4,
        server_clock: Callable[[], float] | None = None,
        machine: str | None = None,
    ) -> None:
        self._server = Server(address, libraries=libraries, idle_seconds=idle_seconds)
        self._session = ServerSession(self._server, beat_seconds=beat_seconds)
        self._time = ServerTime(self._session, server_clock=server_clock, machine=machine)

    @property
    def place(self) -> str:
        """The database, without user and password."""
        return self._server.place

    def open(self, clock: Ticking, *, what: str = "The budget of requests", durable: bool = False) -> PostgresStore:  # noqa: ARG002  all is
        """The tables for one purpose, in the one session."""
        return PostgresStore(self._session, self._time, clock, what)

    @contextmanager
    def lease(self, tenant: str, data: str) -> Iterator[None]:
        """The exclusive right to work on a tenant of the data at an address."""
        name = _lease_name(tenant, data)
        self._session.acquire(name, BUSY.format(tenant=tenant))
        try:
            yield
        finally:
            self._session.release(name)
            self._session.rest()

    @property
    def identity(self) -> str:
        """The name of the state, made with its tables."""
        with self._session.transaction("The state") as statements:
            row = statements.execute("SELECT name FROM state_identity").fetchone()
        return str(row[0]) if row else ""

    def fence(self, tenant: str, data: str) -> int:
        """The number of the lease, as the database has it now."""
        name = _lease_name(tenant, data)
        with self._session.transaction("The leases") as statements:
            row = statements.execute("SELECT fence FROM leases WHERE name = ?", (name,)).fetchone()
        ours = self._session.leases.get(name)
        if ours is None or row != (ours,):
            raise StorageError(
                f"This run has lost the lease of '{tenant}' (`leases` in {self.place}). Nothing further is written. Run the same command "
                "again."
            )
        return ours

    def is_leased(self, tenant: str, data: str) -> bool:
        """Whether a session holds the lock of that lease."""
        number = lock_number(_lease_name(tenant, data)) & 0xFFFF_FFFF_FFFF_FFFF
        with self._session.transaction("The leases") as statements:
            row = statements.execute(
                "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND classid = ? AND objid = ? "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
                (number >> 32, number & 0xFFFF_FFFF),
            ).fetchone()
        self.close()
        return row is not None

    def acquired(self, tenant: str, data: str) -> bool:
        """Whether this session acquired that lease."""
        return _lease_name(tenant, data) in self._session.leases

    def examine(self) -> tuple[ServerFacts, float]:
        """What the server says of itself, and the seconds of a round trip: the least of five. Raises the errors of a store."""
        facts, trips = self._session.facts, []
        for _ in range(5):
            with self._session.transaction("The state") as statements:
                begun = perf_counter()
                statements.execute("SELECT 1")
                trips.append(perf_counter() - begun)
        self.close()
        return facts, min(trips)

    def exclude_writers(self, session: Session) -> None:
        """Lock the tables against everybody else's changes."""
        session.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # the other place may take its time
        session.execute("LOCK TABLE migration_writes, state_moves IN SHARE ROW EXCLUSIVE MODE")

    def close(self) -> None:
        """Close the session, unless it holds a lease."""
        self._session.rest()


class PostgresStore:
    """The tables for one purpose. Every commit waits for the server's disk."""

    taken = "(SELECT count(*) FROM budget_slots s WHERE s.library = l.library)"
    allowance = 0.1
    """Part of the budget's margin."""

    def __init__(self, session: ServerSession, time: ServerTime, clock: Ticking, what: str) -> None:
        self._session = session
        self._time = time
        self._clock = clock
        self._what = what

    def transaction(self) -> AbstractContextManager[Session]:
        """Write everything or nothing."""
        return cast("AbstractContextManager[Session]", self._session.transaction(self._what))

    def moment(self, session: Session, library: str) -> Moment:
        """Lock the library's row and return the budget's time."""
        return self._time.read(cast("Statements", session), library, self._clock)

    def read(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.transaction() as session:
            return session.execute(query, values).fetchall()

    def stream(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield rows while they are read, in a session of its own."""
        server = self._session.server
        connection, _ = server.connect()
        try:
            connection.execute(
                "SET idle_in_transaction_session_timeout = 0"
            )  # it only reads, and its reader may be slow
            with connection, connection.transaction(), connection.cursor(name="rows") as cursor:
                cursor.itersize = _STREAMED_ROWS
                cursor.execute(for_postgres(query), values_for_postgres(values) or None)
                yield from cursor
        except psycopg.Error as error:
            raise statement_error(self._what, server.place, server.secret, error) from None

    def close(self) -> None:
        """Close the session, unless it holds a lease; the next transaction opens another."""
        self._session.rest()


def _lease_name(tenant: str, data: str) -> str:
    return f"{tenant} {data}"
