"""The two places of the state, a file and a Postgres database, for tests that hold for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.state.local import LocalState
from pipelines.state.postgres import PostgresState
from pipelines.state.store import State
from tests.postgres import database


class Place:
    """One place. `state` opens it as another process would."""

    def __init__(self, path: Path | None, address: str = "") -> None:
        self.path = path
        self.address = address
        self._opened: list[State] = []

    def state(self, clock: Clock, **options: Any) -> State:
        """A state of its own; a database has the time of a test's clock."""
        if self.path is not None:
            return LocalState(self.path)
        if not isinstance(clock, SystemClock):
            options = {"server_clock": clock.monotonic, "machine": "this one", **options}
        self._opened.append(PostgresState(self.address, **options))
        return self._opened[-1]

    def close(self) -> None:
        """Close all states."""
        for state in self._opened:
            state.close()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a query, in a session of its own."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("SET search_path = bookferry_state")
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []


def slots_taken(budget: Budget) -> int:
    """The slots of a budget that are taken now."""
    with budget._store.transaction() as session:
        return budget._look(session, budget._now(session))[0]


@contextmanager
def postgres_place(server: str) -> Iterator[Place]:
    """A new database of a server."""
    with database(server) as address:
        place = Place(None, address)
        try:
            yield place
        finally:
            place.close()
