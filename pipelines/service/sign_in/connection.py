"""What is kept of one sign-in to version 3, and the contract of a store that keeps it (I3).

A store belongs to one connection: a tenant at its base_url. `read` returns what is kept. A change needs the lock, which the kernel or the
database server takes back when a process dies. The stores are in file_tokens.py and postgres_tokens.py; one suite of tests holds both.
Nothing here speaks HTTP or decides when a token is refreshed; token_refresh.py does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from pipelines.errors import SignInError, TemporaryError
from pipelines.service.clock import Clock
from pipelines.service.redaction import keep_secret

LOCK_SECONDS = 900.0
"""Seconds to wait for whoever changes a sign-in: longer than a refresh takes, with all that can go wrong on the way."""

POLL_SECONDS = 0.02
"""Seconds between two looks at a lock that is taken."""

WRITE_TRIES = 10
"""Tries to write what a refresh brought, a second apart: a disk may be full for a moment, and the answer comes only once."""


@dataclass(frozen=True)
class Moment:
    """A time by both clocks. The machine's steady one is right until it boots anew; the time of day may be set by anybody."""

    wall: float
    """Seconds since 1970."""
    steady: float
    boot: str
    """Tells boots and machines apart; empty where the system does not say."""

    @classmethod
    def now(cls, clock: Clock) -> Moment:
        """The time of `clock`."""
        return cls(clock.now().timestamp(), clock.monotonic(), boot_id())

    def age(self, now: Moment) -> float:
        """Seconds from this moment to `now`: by the steady clock where both know it, else by the time of day.

        A time of day that has been set back makes everything infinitely old: a token is then renewed early, which does no harm.
        """
        if self.boot and self.boot == now.boot and now.steady >= self.steady:
            return now.steady - self.steady
        passed = now.wall - self.wall
        return passed if passed >= 0 else float("inf")


@dataclass(frozen=True)
class Registration:
    """A client that registered itself. service-api.md: `client_secret` "is never issued again"; "store the `client_id` and reuse it"."""

    client_id: str
    client_secret: str | None = field(repr=False)
    auth: str
    redirect_uris: tuple[str, ...]
    scopes: tuple[str, ...]
    """What the server stored."""
    asked: tuple[str, ...]
    """What we asked for, which may be more."""
    registered_at: float


@dataclass(frozen=True)
class Grant:
    """What the authorization server gave: a pair of tokens, for whom and how long."""

    client_id: str
    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    scopes: tuple[str, ...]
    lifetime: float
    """Seconds that the access token lives from `obtained` on."""
    obtained: Moment
    """When the tokens were asked for; they are a little younger."""
    signed_in_at: float
    """When the person signed in, in seconds since 1970."""
    refreshes: int = 0
    ends_at: float | None = None
    """When the refresh token ends unless it is used, in seconds since 1970; None where the server does not say."""

    def left(self, now: Moment) -> float:
        """Seconds that the access token still lives; negative when it is over."""
        return self.lifetime - self.obtained.age(now)


@dataclass(frozen=True)
class Connection:
    """All that is kept of one tenant's sign-in."""

    base_url: str
    tenant: str
    registration: Registration | None = None
    grant: Grant | None = None
    refreshing_since: float | None = None
    """Set before a refresh leaves and unset with its answer: an answer was lost if it stands here while nobody refreshes."""
    ended: str | None = None
    """Why the sign-in is over, in the server's words; only a new one helps."""
    version: int = 1


class Locked(Protocol):
    """The right to change one connection, while it is held."""

    def read(self) -> Connection:
        """What is kept now."""
        ...

    def write(self, connection: Connection) -> None:
        """Keep this instead of what was read, all of it or nothing; it is durable when this returns."""
        ...


class TokenStore(Protocol):
    """Where one connection is kept. Safe to use from several threads and processes."""

    @property
    def place(self) -> str:
        """Where that is, for a message; never with a secret."""
        ...

    def read(self) -> Connection:
        """What is kept now, an empty connection where there is nothing. Raises `SignInError` where it cannot be understood."""
        ...

    def locked(self, clock: Clock, seconds: float = LOCK_SECONDS) -> AbstractContextManager[Locked]:
        """Hold the lock for the length of a `with` block; raise `LockTakenError` when it is not to be had within `seconds`."""
        ...


class LockTakenError(TemporaryError):
    """Somebody else changes this sign-in and does not come to an end."""


def encoded(connection: Connection) -> bytes:
    """A connection as JSON."""
    return msgspec.json.format(msgspec.json.encode(connection), indent=1)


def decoded(content: bytes | str, empty: Connection, place: str) -> Connection:
    """A connection from JSON; from now on no message shows its secrets."""
    try:
        connection = msgspec.json.decode(content, type=Connection)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        connection = None
    if connection is None or connection.version != empty.version:
        raise SignInError(
            f"The sign-in of '{empty.tenant}' that is kept in {place} cannot be read: it is damaged, or of another version of Bookferry. "
            f"Run `bookferry login {empty.tenant}`, which replaces it."
        )
    if connection.base_url != empty.base_url:  # what was given to one address goes to no other (I2)
        return empty
    keep_secrets(connection)
    return connection


def keep_secrets(connection: Connection) -> None:
    """Have every secret of a connection taken out of all messages."""
    if connection.grant is not None:
        keep_secret(connection.grant.access_token, connection.grant.refresh_token or "")
    if connection.registration is not None:
        keep_secret(connection.registration.client_secret or "")


def wait_for(is_taken: Callable[[], bool], clock: Clock, seconds: float, place: str) -> None:
    """Look at a lock until it is ours. A process that is being stopped stops waiting, too: its clock says so."""
    until = clock.monotonic() + seconds
    while is_taken():
        if clock.monotonic() >= until:
            raise LockTakenError(
                f"Another process has been renewing the sign-in in {place} for more than {seconds:.0f} s. Nothing was lost: run the same "
                "command again. If it happens again, look for a bookferry process that hangs or is stopped, and end it."
            )
        clock.sleep(POLL_SECONDS)


def boot_id() -> str:
    """What tells this boot of this machine from all others, where the system says it (Linux); else nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def time_of(seconds: float) -> str:
    """A moment in seconds since 1970, for people."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M %Z}"
