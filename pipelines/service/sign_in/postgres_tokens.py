"""Stores a sign-in in a row of the shared state, for several machines that work for one library (I3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from pipelines.errors import StorageError, TenantBusyError
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.redaction import keep_secret, outside_text
from pipelines.service.sign_in.stored_sign_in import StoredSignIn, decode_sign_in, encode_sign_in
from pipelines.service.sign_in.token_store import LOCK_SECONDS, LockedSignIn, wait_for_lock
from pipelines.settings.postgres_address import PostgresAddress
from pipelines.state.postgres import PostgresState

_REPLACE = (
    "INSERT INTO sign_ins AS existing (connection, document) VALUES (:key, :document) ON CONFLICT (connection) DO UPDATE "
    "SET document = excluded.document WHERE existing.document = :known OR existing.document = excluded.document"
)


class PostgresTokens:
    """A sign-in in a row; the document is the JSON of the file store. The lock is a lease."""

    def __init__(self, address: str, tenant: str, base_url: str) -> None:
        keep_secret(PostgresAddress.parse(address).secret)
        self._empty = StoredSignIn(base_url, tenant)
        self._address = address
        self._state = PostgresState(address)

    @property
    def place(self) -> str:
        """The database, without its password."""
        return f"{outside_text(self._state.place)}, table bookferry_state.sign_ins"

    def read(self) -> StoredSignIn:
        """Return the stored sign-in."""
        with closing(self._state):
            return _Row(self._state, self._empty, self.place).read()

    @contextmanager
    def locked(self, clock: Clock, seconds: float = LOCK_SECONDS) -> Iterator[LockedSignIn]:
        """Hold the lock while the block runs."""
        with closing(self._state), ExitStack() as lease:

            def is_taken() -> bool:
                try:
                    lease.enter_context(PostgresState(self._address).lease(self._empty.tenant, self._empty.base_url))
                except TenantBusyError:
                    return True
                return False

            wait_for_lock(is_taken, clock, seconds, self.place)
            yield _Row(self._state, self._empty, self.place)


class _Row:
    """The row. A change replaces only what was read: tokens of a refresh are kept after a lost lease, too, but over nothing newer."""

    def __init__(self, state: PostgresState, empty: StoredSignIn, place: str) -> None:
        self._store = state.open(SystemClock(), what="The sign-in")
        self._empty = empty
        self._place = place
        self._key = f"{empty.tenant} {empty.base_url}"
        self._known: str | None = None

    def read(self) -> StoredSignIn:
        """Return the stored sign-in."""
        with self._store.transaction() as session:
            row = session.execute("SELECT document FROM sign_ins WHERE connection = ?", (self._key,)).fetchone()
        self._known = row[0] if row else None
        return self._empty if self._known is None else decode_sign_in(self._known, self._empty, self._place)

    def write(self, stored: StoredSignIn) -> None:
        """Replace the row."""
        document = encode_sign_in(stored).decode()
        with self._store.transaction() as session:
            values = {"key": self._key, "document": document, "known": self._known}
            if session.execute(_REPLACE, values).rowcount != 1:
                raise StorageError(
                    f"The sign-in in {self._place} was changed by somebody else while it was being renewed, and was left as it is. "
                    "Run the same command again."
                )
        self._known = document
