"""What is kept of one sign-in to version 3, and the contract of a store that keeps it (I3).

A store belongs to one connection: a tenant at its base_url. `read` returns what is kept. A change needs the lock, which the kernel or the
database server takes back when a process dies. The stores are in file_tokens.py and postgres_tokens.py; one suite of tests holds both.
Nothing here speaks HTTP or decides when a token is refreshed; token_refresh.py does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from pipelines.errors import TemporaryError
from pipelines.service.clock import Clock
from pipelines.service.sign_in.stored_sign_in import StoredSignIn

LOCK_SECONDS = 900.0
"""Seconds to wait for whoever changes a sign-in: longer than a refresh takes, with all that can go wrong on the way."""

POLL_SECONDS = 0.02
"""Seconds between two looks at a lock that is taken."""

WRITE_TRIES = 10
"""Tries to write what a refresh brought, a second apart: a disk may be full for a moment, and the answer comes only once."""


class LockedSignIn(Protocol):
    """The right to change one connection, while it is held."""

    def read(self) -> StoredSignIn:
        """What is kept now."""
        ...

    def write(self, stored: StoredSignIn) -> None:
        """Keep this instead of what was read, all of it or nothing; it is durable when this returns."""
        ...


class TokenStore(Protocol):
    """Where one connection is kept. Safe to use from several threads and processes."""

    @property
    def place(self) -> str:
        """Where that is, for a message; never with a secret."""
        ...

    def read(self) -> StoredSignIn:
        """What is kept now, an empty connection where there is nothing. Raises `SignInError` where it cannot be understood."""
        ...

    def locked(self, clock: Clock, seconds: float = LOCK_SECONDS) -> AbstractContextManager[LockedSignIn]:
        """Hold the lock for the length of a `with` block; raise `LockTakenError` when it is not to be had within `seconds`."""
        ...


class LockTakenError(TemporaryError):
    """Somebody else changes this sign-in and does not come to an end."""


def wait_for_lock(is_taken: Callable[[], bool], clock: Clock, seconds: float, place: str) -> None:
    """Look at a lock until it is ours. A process that is being stopped stops waiting, too: its clock says so."""
    until = clock.monotonic() + seconds
    while is_taken():
        if clock.monotonic() >= until:
            raise LockTakenError(
                f"Another process has been renewing the sign-in in {place} for more than {seconds:.0f} s. Nothing was lost: run the same "
                "command again. If it happens again, look for a bookferry process that hangs or is stopped, and end it."
            )
        clock.sleep(POLL_SECONDS)
