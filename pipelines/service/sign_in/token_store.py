"""Where a sign-in is stored, and the lease for changing it (I3): a row of a state, in a SQLite file of this user or in the database.

`read` returns the stored sign-in. A change needs the lease, which a process that died keeps for some seconds more. Refreshing tokens is the
task of token_refresh.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from pipelines.errors import StorageError, TemporaryError, TenantBusyError
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.redaction import keep_secret
from pipelines.service.sign_in.stored_sign_in import StoredSignIn, decode_sign_in, encode_sign_in
from pipelines.settings.postgres_address import PostgresAddress
from pipelines.settings.settings import Settings
from pipelines.state.leases import LeaseTable
from pipelines.state.local import LocalState
from pipelines.state.store import Store

if TYPE_CHECKING:
    from pipelines.state.postgres import PostgresState

SIGN_INS_FILE = "sign-ins.db"
"""The file in the user's folder. It has the mode 0600, and never the group of the data."""

LEASE_SECONDS = 900.0
"""Seconds to wait for another process that changes the sign-in: longer than a refresh takes, including everything that can go wrong."""

POLL_SECONDS = 0.02
"""Seconds between two tries to get a lease."""

WRITE_TRIES = 10
"""Tries to write the tokens of a refresh, one second apart: a disk may be full for a moment, and the response comes only once."""

_READ = "SELECT document FROM sign_ins WHERE connection = ?"
_REPLACE = (
    "INSERT INTO sign_ins AS existing (connection, document) VALUES (:key, :document) ON CONFLICT (connection) DO UPDATE "
    "SET document = excluded.document WHERE existing.document = :known OR existing.document = excluded.document"
)


class LeaseTakenError(TemporaryError):
    """Another process changes this sign-in and does not finish."""


def open_tokens(settings: Settings, tenant: str) -> TokenStore:
    """Returns the store of a tenant's sign-in: in the database if one is configured, else in the user's folder. Opens nothing yet."""
    base_url = settings.tenant(tenant).base_url
    address = settings.postgres()
    if address is None:
        return TokenStore(LocalState(settings.tokens_folder() / SIGN_INS_FILE, private=True), tenant, base_url)
    from pipelines.state.postgres import PostgresState  # noqa: PLC0415  most users have no database

    keep_secret(PostgresAddress.parse(address).secret)
    return TokenStore(PostgresState(address), tenant, base_url)


class TokenStore:
    """The sign-in of a tenant at its base_url, in a state. Safe to use from several threads and processes."""

    def __init__(self, state: LocalState | PostgresState, tenant: str, base_url: str) -> None:
        self.place = state.place
        self._store = state.open(SystemClock(), durable=True)
        self._lease_table = state.lease_table
        self._empty = StoredSignIn(base_url, tenant)

    def read(self) -> StoredSignIn:
        """Return the stored sign-in, an empty one if there is none. Raises `SignInError` if it cannot be understood."""
        with closing(self._store):
            document = next((row[0] for row in self._store.stream(_READ, (_key(self._empty),))), None)
        return self._empty if document is None else decode_sign_in(document, self._empty, self.place)

    @contextmanager
    def leased(self, clock: Clock, seconds: float = LEASE_SECONDS) -> Iterator[LeasedSignIn]:
        """Have the lease while the block runs; raise `LeaseTakenError` if it is not free within `seconds`.

        A process that is being stopped stops waiting, because its clock raises.
        """
        leases, until = self._lease_table(), clock.monotonic() + seconds
        with closing(self._store), ExitStack() as lease:
            while True:
                try:
                    lease.enter_context(leases.lease(_key(self._empty), "{owner}"))
                    break
                except TenantBusyError as owner:
                    if clock.monotonic() >= until:
                        raise LeaseTakenError(
                            f"Another process has been renewing the sign-in in {self.place} for more than {seconds:.0f} s: {owner}. "
                            "Nothing was lost: run the same command again. If it happens again, that process hangs: end it."
                        ) from None
                clock.sleep(POLL_SECONDS)
            yield LeasedSignIn(self._store, leases, self._empty, self.place)


class LeasedSignIn:
    """One sign-in under its lease: it may be changed.

    A change replaces only what was stored before it: tokens of a refresh are kept after a lost lease, too, but over nothing newer.
    """

    def __init__(self, store: Store, leases: LeaseTable, empty: StoredSignIn, place: str) -> None:
        self._store = store
        self._leases = leases
        self._empty = empty
        self._place = place
        self._key = _key(empty)
        with store.transaction() as session:
            row = session.execute(_READ, (self._key,)).fetchone()
        self._known: str | None = row and row[0]

    def check(self) -> None:
        """Raise `StorageError` if the lease was lost, so that another process may be changing the sign-in."""
        self._leases.fence(self._key)

    def read(self) -> StoredSignIn:
        """Return the stored sign-in."""
        return self._empty if self._known is None else decode_sign_in(self._known, self._empty, self._place)

    def write(self, stored: StoredSignIn) -> None:
        """Replace the stored sign-in as a whole; it is durable when this returns."""
        document = encode_sign_in(stored).decode()
        with self._store.transaction() as session:
            values = {"key": self._key, "document": document, "known": self._known}
            if session.execute(_REPLACE, values).rowcount != 1:
                raise StorageError(
                    f"The sign-in in {self._place} was changed by somebody else while it was being renewed, and was left as it is. "
                    "Run the same command again."
                )
        self._known = document


def _key(sign_in: StoredSignIn) -> str:
    return f"{sign_in.tenant} {sign_in.base_url}"
