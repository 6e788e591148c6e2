"""The one session of the database through which a run works on the shared state. A lost one is replaced by the next transaction."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from pipelines.state.postgres_errors import statement_error
from pipelines.state.server import Connection, Server, Statements, begin
from pipelines.state.store import weakly


class ServerSession:
    """The session, opened when needed and closed before a fork. Threads take turns. `check` is called before each commit."""

    def __init__(self, server: Server, check: Callable[[Statements], None] = lambda _: None) -> None:
        self.server = server
        self._check = check
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        after = weakly(self._after_fork)
        os.register_at_fork(before=weakly(self._before_fork), after_in_parent=after, after_in_child=after)

    @contextmanager
    def transaction(self) -> Iterator[Statements]:
        """Write everything or nothing."""
        with self._lock:
            try:
                statements = Statements(self._begun())
                try:
                    yield statements
                    self._check(statements)
                    statements.connection.execute("COMMIT")
                finally:
                    self._settle()
            except psycopg.Error as error:
                raise statement_error(self.server.place, self.server.secret, error) from None

    def close(self) -> None:
        """Close the session; the next transaction opens another."""
        with self._lock:
            self._disconnect()

    def _begun(self) -> Connection:
        """A connection in a new transaction. One that broke while nothing was done is replaced."""
        if self._connection is not None:
            try:
                begin(self._connection)
            except psycopg.OperationalError:
                self._disconnect()
            else:
                return self._connection
        self._connection = self.server.connect()
        begin(self._connection)
        return self._connection

    def _settle(self) -> None:
        """Undo what was not committed. A statement that the exception of a signal handler broke off ends with its connection."""
        if self._connection is None:
            return
        with suppress(psycopg.Error):
            if self._connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                self._connection.execute("ROLLBACK")
        if self._connection.info.transaction_status is not TransactionStatus.IDLE:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _before_fork(self) -> None:
        self._lock.acquire()
        self._disconnect()

    def _after_fork(self) -> None:
        self._lock.release()
