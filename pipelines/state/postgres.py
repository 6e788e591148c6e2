"""The state in a Postgres database, which several machines share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, cast

import psycopg

from pipelines.state.leases import SILENCE_SECONDS, LeaseTable
from pipelines.state.postgres_errors import statement_error
from pipelines.state.server import Server, Statements, begin
from pipelines.state.server_time import ServerTime
from pipelines.state.session import ServerSession
from pipelines.state.statements import for_postgres, values_for_postgres
from pipelines.state.store import Moment, Session, Ticking

BUSY = (
    "Another run is at work on '{tenant}' at this moment: {{owner}}. One library has one run at a time. Wait until it ends, then run this "
    f"again if you still need to. The lease of a run that died ends by itself within {SILENCE_SECONDS:.0f} seconds."
)

_STREAMED_ROWS = 1000


class PostgresState:
    """The state at the address of a database. Nothing is opened yet; all stores of this object share one session, its leases another.

    `server_clock` and `machine` are for tests.
    """

    is_own = False

    def __init__(
        self,
        address: str,
        *,
        server_clock: Callable[[], float] | None = None,
        machine: str | None = None,
    ) -> None:
        self._server = Server(address)
        self._leases = self.lease_table()
        # An update of `fence`, which is part of a key, waits for this lock; one of `beats` does not
        self._session = ServerSession(self._server, lambda statements: self._leases.check(statements, "FOR KEY SHARE"))
        self._time = ServerTime(self._server, server_clock=server_clock, machine=machine)

    @property
    def place(self) -> str:
        """The database, without user and password."""
        return self._server.place

    def open(self, clock: Ticking, *, durable: bool = False) -> PostgresStore:  # noqa: ARG002  all is
        """The tables for one purpose, in the one session."""
        return PostgresStore(self._session, self._time, clock)

    def lease(self, tenant: str, data: str) -> AbstractContextManager[None]:
        """The exclusive right to work on a tenant of the data at an address."""
        return self._leases.lease(_lease_name(tenant, data), BUSY.format(tenant=tenant))

    def lease_table(self) -> LeaseTable:
        """Leases whose loss ends no transaction of these stores."""
        own = ServerSession(self._server)
        return LeaseTable(
            cast("Callable[[], AbstractContextManager[Session]]", own.transaction), own.close, self._server.place
        )

    @property
    def identity(self) -> str:
        """The name of the state, made with its tables, while this run has its leases."""
        with self._session.transaction() as statements:
            row = statements.execute("SELECT name FROM state_identity").fetchone()
        return str(row[0]) if row else ""

    def fence(self, tenant: str, data: str) -> int:
        """The number of the lease, as the database has it now."""
        return self._leases.fence(_lease_name(tenant, data))

    def leased(self, tenants: Collection[str], data: str) -> set[str]:
        """Those whose leases living runs hold."""
        return {
            name.partition(" ")[0] for name in self._leases.living([_lease_name(tenant, data) for tenant in tenants])
        }

    def renew_leases(self) -> bool:
        """Beat for leases that were silent for long."""
        return self._leases.renew()

    def fsync(self) -> str:
        """The server's setting of that name. Raises the errors of a store."""
        with closing(self), self._session.transaction() as statements:
            [(setting,)] = statements.execute("SELECT current_setting('fsync')").fetchall()
        return str(setting)

    def close(self) -> None:
        """Close the session; the next transaction opens another."""
        self._session.close()


class PostgresStore:
    """The tables for one purpose. Every commit waits for the server's disk."""

    taken = "(SELECT count(*) FROM budget_slots s WHERE s.library = l.library)"
    allowance = 0.1
    """Part of the budget's margin."""

    def __init__(self, session: ServerSession, time: ServerTime, clock: Ticking) -> None:
        self._session = session
        self._time = time
        self._clock = clock

    def transaction(self) -> AbstractContextManager[Session]:
        """Write everything or nothing."""
        return cast("AbstractContextManager[Session]", self._session.transaction())

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
        try:
            with closing(server.connect()) as connection, connection.cursor(name="rows") as cursor:
                begin(connection)
                connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # its reader may be slow
                cursor.itersize = _STREAMED_ROWS
                cursor.execute(for_postgres(query), values_for_postgres(values) or None)
                yield from cursor
        except psycopg.Error as error:
            raise statement_error(server.place, server.secret, error) from None

    def close(self) -> None:
        """Close the session; the next transaction opens another."""
        self._session.close()


def _lease_name(tenant: str, data: str) -> str:
    return f"{tenant} {data}"
