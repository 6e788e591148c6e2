"""The one session of the database through which a run works on the shared state. A lost one is replaced by the next transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from pipelines.state.postgres_errors import statement_error
from pipelines.state.server import Connection, Server, Statements, begin
from pipelines.state.store import OneConnection


class ServerSession(OneConnection[Connection]):
    """The session, opened when needed. Threads take turns. `check` is called before each commit."""

    def __init__(self, server: Server, check: Callable[[Statements], None] = lambda _: None) -> None:
        super().__init__()
        self.server = server
        self._check = check

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
