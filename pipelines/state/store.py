"""What the budget, the journal and the leases need of the place where the state is."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Values = Sequence[Any] | Mapping[str, Any]
"""The values of a statement: in the order of its `?`, or by the names of its `:name`."""


class Ticking(Protocol):
    """The part of a clock that a store needs."""

    def monotonic(self) -> float:
        """Return seconds since a moment that all processes on this machine share; never set back, but restarted at boot."""
        ...

    def sleep(self, seconds: float, /) -> None:
        """Return after `seconds` or slightly later."""
        ...


class Result(Protocol):
    """The result of a statement. `rowcount`: rows that were changed."""

    @property
    def rowcount(self) -> int: ...  # noqa: D102

    def fetchone(self) -> Any: ...  # noqa: D102

    def fetchmany(self, size: int, /) -> list[Any]: ...  # noqa: D102

    def fetchall(self) -> list[Any]: ...  # noqa: D102


class Session(Protocol):
    """Executes statements within one transaction. Their text is valid in SQLite and in Postgres, with `?` or `:name` for values."""

    def execute(self, statement: str, values: Values = ..., /) -> Result: ...  # noqa: D102

    def executemany(self, statement: str, values: Sequence[Sequence[Any]], /) -> object: ...  # noqa: D102


class Moment(NamedTuple):
    """The time of a library's budget, in seconds, as all who share the state measure it.

    `asked_at`: the clock's monotonic time just before it was read. `stepped`: it was set back, so that stored times may lie too far ahead.
    `known_until`: the time after which how much time passed is not known; None if all is known. `lost`: the store may have forgotten what
    it granted.
    """

    now: float
    asked_at: float
    stepped: bool = False
    known_until: float | None = None
    lost: bool = False


class Store(Protocol):
    """The tables of the state, for one purpose. Several threads may use it; it works again after `close`.

    `taken`: SQL for the number of slots that a library has taken. `allowance`: seconds that a commit may take before the budget's time is
    read again; 0 where it has no way to go.
    """

    taken: str
    allowance: float

    def transaction(self) -> AbstractContextManager[Session]:
        """Write everything or nothing. Raises `StorageError` if the store cannot be used, or where this run has lost a lease."""
        ...

    def moment(self, session: Session, library: str) -> Moment:
        """Wait until no other transaction works on the budget of a library, and return its time."""
        ...

    def read(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query, without waiting for anyone who writes. Raises `StorageError` if the store cannot be used."""
        ...

    def stream(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield rows while they are read, beside other transactions."""
        ...

    def close(self) -> None:
        """Close connections; the next transaction opens another."""
        ...


class State(Protocol):
    """The place of the state. `place` names it in messages, without a password. `is_own`: only one data folder uses it."""

    is_own: bool

    @property
    def place(self) -> str: ...  # noqa: D102

    @property
    def identity(self) -> str:
        """The name of a shared state, which never changes; empty for one that is not shared. Raises where a lease was lost."""
        ...

    def fence(self, tenant: str, data: str) -> int:
        """The number of the lease that this run has, which grows with each owner; 0 where no other machine can have it.

        Raises `StorageError` where the lease was lost.
        """
        ...

    def open(self, clock: Ticking, *, durable: bool = ...) -> Store:
        """The tables for one purpose. `durable`: a write survives a loss of power, too."""
        ...

    def lease(self, tenant: str, data: str) -> AbstractContextManager[None]:
        """The exclusive right to work on a tenant of the data at an address, among all who share the state.

        Raises `TenantBusyError` where another run has it. One that is dead has it for some seconds more, which this waits for.
        """
        ...

    def leased(self, tenants: Collection[str], data: str) -> set[str]:
        """Those tenants that other living runs have right now; waits as `lease` does."""
        ...

    def renew_leases(self) -> bool:
        """Make sure, just before an effect elsewhere, that no other run can have the leases of this one. Returns whether that took time.

        Raises `StorageError` where it was lost, or where the state cannot be reached.
        """
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class Closing(Protocol):
    """A connection of any database."""

    def close(self) -> None: ...  # noqa: D102


C = TypeVar("C", bound=Closing)


class OneConnection(Generic[C]):
    """One connection for all threads of a process, which take turns by `_lock`. It is opened when needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: C | None = None

    def close(self) -> None:
        """Close the connection; the next transaction opens another."""
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
