"""The contract of a token store: where a sign-in is stored, and the lock for changing it (I3).

A store belongs to one tenant at its base_url. `read` returns the stored sign-in. A change needs the lock, which ends with its process.
The stores are in file_tokens.py and postgres_tokens.py; one test suite covers both. Refreshing tokens is the task of token_refresh.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from pipelines.errors import TemporaryError
from pipelines.service.clock import Clock
from pipelines.service.sign_in.stored_sign_in import StoredSignIn

LOCK_SECONDS = 900.0
"""Seconds to wait for another process that changes the sign-in: longer than a refresh takes, including everything that can go wrong."""

POLL_SECONDS = 0.02
"""Seconds between two tries to take a lock."""

WRITE_TRIES = 10
"""Tries to write the tokens of a refresh, one second apart: a disk may be full for a moment, and the response comes only once."""


class LockedSignIn(Protocol):
    """One sign-in under its lock: it may be changed."""

    def read(self) -> StoredSignIn:
        """Return the stored sign-in."""
        ...

    def write(self, stored: StoredSignIn) -> None:
        """Replace the stored sign-in as a whole; it is durable when this returns."""
        ...


class TokenStore(Protocol):
    """Where one sign-in is stored. Safe to use from several threads and processes."""

    @property
    def place(self) -> str:
        """The location for a message; never with a secret."""
        ...

    def read(self) -> StoredSignIn:
        """Return the stored sign-in, an empty one if there is none. Raises `SignInError` if it cannot be understood."""
        ...

    def locked(self, clock: Clock, seconds: float = LOCK_SECONDS) -> AbstractContextManager[LockedSignIn]:
        """Hold the lock while the block runs; raise `LockTakenError` if it is not free within `seconds`."""
        ...


class LockTakenError(TemporaryError):
    """Another process changes this sign-in and does not finish."""


def wait_for_lock(is_taken: Callable[[], bool], clock: Clock, seconds: float, place: str) -> None:
    """Try to take a lock until it is ours. A process that is being stopped stops waiting, because its clock raises."""
    until = clock.monotonic() + seconds
    while is_taken():
        if clock.monotonic() >= until:
            raise LockTakenError(
                f"Another process has been renewing the sign-in in {place} for more than {seconds:.0f} s. Nothing was lost: run the same "
                "command again. If it happens again, look for a bookferry process that hangs or is stopped, and end it."
            )
        clock.sleep(POLL_SECONDS)
