"""The one session of the database through which a run works on the shared state, and the leases that it holds.

A lease is an advisory lock of the session, and a fence number. A process that is stopped or cut off falls silent; the server then ends its
session, which frees the lock, and whoever takes the lease next raises the number. A run that holds a lease never opens another session by
itself: where the session is lost the lease may be somebody else's, so each further transaction fails and nothing more is sent.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import psycopg
from psycopg.pq import TransactionStatus

from pipelines.errors import StorageError, TenantBusyError
from pipelines.running_process import this_owner
from pipelines.state.postgres_errors import server_message, statement_error
from pipelines.state.server import Connection, Server, ServerFacts, Statements
from pipelines.state.store import weakly

CANCEL_SECONDS = 5.0

_abandoned: list[Connection] = []
"""Connections of a parent process: closing them here would end the parent's session."""


class ServerSession:
    """The session, opened when needed. Threads take turns. `beat_seconds`: a session with leases says something that often."""

    def __init__(self, server: Server, *, beat_seconds: float) -> None:
        self.server = server
        self.leases: dict[str, int] = {}
        """Name → the fence number of ours."""
        self._beat_seconds = beat_seconds
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._facts: ServerFacts | None = None
        self._lost: str | None = None
        self._beat: threading.Event | None = None
        after = weakly(self._after_fork)
        os.register_at_fork(
            before=weakly(self._before_fork), after_in_parent=after, after_in_child=weakly(self._in_child)
        )

    @contextmanager
    def transaction(self, what: str) -> Iterator[Statements]:
        """Write everything or nothing. `what` names the content in messages."""
        with self._lock, self._errors(what):
            connection = self._begun()
            try:
                yield Statements(connection)
                connection.execute("COMMIT")
            finally:
                self._settle()
                if connection.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")

    @property
    def facts(self) -> ServerFacts:
        """What the server said when the session was opened."""
        if (known := self._facts) is None:
            with self.transaction("The state"):
                pass
            return self.facts
        return known

    def acquire(self, name: str, busy: str) -> None:
        """Take a lease. Raises `TenantBusyError`, with `busy` and the name of the owner, where another run has it."""
        number = lock_number(name)
        with self._lock, self._errors("The leases"):
            connection = self._connected()
            statements = Statements(connection)
            taken = name not in self.leases and statements.execute(
                "SELECT pg_try_advisory_lock(?)", (number,)
            ).fetchone() == (True,)
            if not taken:
                row = statements.execute("SELECT owner, since FROM leases WHERE name = ?", (name,)).fetchone()
                raise TenantBusyError(busy.format(owner=f"{row[0]} since {row[1]}" if row else "another run"))
            try:
                row = statements.execute(
                    "INSERT INTO leases (name, fence, owner, since) VALUES (?, 1, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                    "fence = leases.fence + 1, owner = excluded.owner, since = excluded.since RETURNING fence",
                    (name, this_owner(), datetime.now(UTC).isoformat(timespec="seconds")),
                ).fetchone()
            except BaseException:
                self._disconnect()
                raise
            self.leases[name] = row[0] if row else 0
            self._keep_beating()

    def release(self, name: str) -> None:
        """Give a lease back. After the last one the session may be opened anew."""
        with self._lock:
            self.leases.pop(name, None)
            if self._connection is not None and self._lost is None:
                try:
                    Statements(self._connection).execute("SELECT pg_advisory_unlock(?)", (lock_number(name),))
                except psycopg.Error:
                    self._disconnect()
            if not self.leases:
                self._lost = None
                self._stop_beating()

    def rest(self) -> None:
        """Close the session unless it holds a lease."""
        with self._lock:
            if not self.leases:
                self._disconnect()

    def _begun(self) -> Connection:
        """A connection in a new transaction. One that broke while nothing was done is replaced, unless it held a lease."""
        connection = self._connected()
        try:
            connection.execute("BEGIN")
        except psycopg.OperationalError:
            if self.leases:
                raise
            self._disconnect()
            connection = self._connected()
            connection.execute("BEGIN")
        return connection

    def _connected(self) -> Connection:
        if self._lost is not None:
            raise StorageError(self._lost)
        if self._connection is None:
            self._connection, self._facts = self.server.connect()
        return self._connection

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            if self._connection is None or self._connection.closed:
                self._lose(error)
            if self._lost is not None:
                raise StorageError(self._lost) from None
            raise statement_error(what, self.server.place, self.server.secret, error) from None
        except BaseException:
            self._settle()
            raise

    def _settle(self) -> None:
        """End a statement that the exception of a signal handler broke off, so that a run that is stopped can still clean up.

        psycopg does so itself after a KeyboardInterrupt alone; Dagster raises another exception.
        """
        connection = self._connection
        if connection is None or connection.info.transaction_status is not TransactionStatus.ACTIVE:
            return
        try:
            connection.cancel_safe(timeout=CANCEL_SECONDS)
            while connection.pgconn.get_result() is not None:
                pass
        except psycopg.Error as error:
            self._lose(error)

    def _lose(self, error: psycopg.Error) -> None:
        self._disconnect()
        if self.leases:
            self._lost = (
                f"The session with the state in {self.server.place} was lost ({server_message(error, self.server.secret)}), and with it "
                "the lease: another run may be at work on the library now. Nothing further is sent. Run the same command again."
            )

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _keep_beating(self) -> None:
        if self._beat is None:
            self._beat = threading.Event()
            threading.Thread(target=self._beating, args=(self._beat,), name="lease", daemon=True).start()

    def _stop_beating(self) -> None:
        if self._beat is not None:
            self._beat.set()
            self._beat = None

    def _beating(self, ended: threading.Event) -> None:
        """Say something now and then. A transaction that runs at that moment says enough."""
        while not ended.wait(self._beat_seconds):
            if not self._lock.acquire(blocking=False):
                continue
            try:
                if self._connection is not None and not ended.is_set():
                    self._connection.execute("SELECT 1")
            except psycopg.Error as error:
                self._lose(error)
            finally:
                self._lock.release()

    def _before_fork(self) -> None:
        self._lock.acquire()

    def _after_fork(self) -> None:
        self._lock.release()

    def _in_child(self) -> None:
        if self._connection is not None:
            _abandoned.append(self._connection)
            self._connection = None
        if self.leases:
            self._lost = "A process that was forked has no lease of its own, so nothing is sent from it."
        self._beat = None
        self._lock.release()


def lock_number(name: str) -> int:
    """The number of a lease's advisory lock."""
    return int.from_bytes(hashlib.sha256(f"bookferry lease {name}".encode()).digest()[:8], "big", signed=True)
