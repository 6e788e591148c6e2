"""What is stored of one sign-in to version 3: tokens, registered client, state of a refresh (I3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from pipelines.errors import SignInError
from pipelines.service.clock import Clock
from pipelines.service.redaction import keep_secret


@dataclass(frozen=True)
class ClockReading:
    """A time by both clocks. The machine's steady one is right until it boots anew; the time of day may be set by anybody."""

    wall: float
    """Seconds since 1970."""
    steady: float
    boot: str
    """Tells boots and machines apart; empty where the system does not say."""

    @classmethod
    def now(cls, clock: Clock) -> ClockReading:
        """The time of `clock`."""
        return cls(clock.now().timestamp(), clock.monotonic(), boot_id())

    def age(self, now: ClockReading) -> float:
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
    obtained: ClockReading
    """When the tokens were asked for; they are a little younger."""
    signed_in_at: float
    """When the person signed in, in seconds since 1970."""
    refreshes: int = 0
    ends_at: float | None = None
    """When the refresh token ends unless it is used, in seconds since 1970; None where the server does not say."""

    def left(self, now: ClockReading) -> float:
        """Seconds that the access token still lives; negative when it is over."""
        return self.lifetime - self.obtained.age(now)


@dataclass(frozen=True)
class StoredSignIn:
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


def encode_sign_in(stored: StoredSignIn) -> bytes:
    """A connection as JSON."""
    return msgspec.json.format(msgspec.json.encode(stored), indent=1)


def decode_sign_in(content: bytes | str, empty: StoredSignIn, place: str) -> StoredSignIn:
    """A connection from JSON; from now on no message shows its secrets."""
    try:
        stored = msgspec.json.decode(content, type=StoredSignIn)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        stored = None
    if stored is None or stored.version != empty.version:
        raise SignInError(
            f"The sign-in of '{empty.tenant}' that is kept in {place} cannot be read: it is damaged, or of another version of Bookferry. "
            f"Run `bookferry login {empty.tenant}`, which replaces it."
        )
    if stored.base_url != empty.base_url:  # what was given to one address goes to no other (I2)
        return empty
    keep_secrets(stored)
    return stored


def keep_secrets(stored: StoredSignIn) -> None:
    """Have every secret of a connection taken out of all messages."""
    if stored.grant is not None:
        keep_secret(stored.grant.access_token, stored.grant.refresh_token or "")
    if stored.registration is not None:
        keep_secret(stored.registration.client_secret or "")


def boot_id() -> str:
    """What tells this boot of this machine from all others, where the system says it (Linux); else nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def local_time(seconds: float) -> str:
    """A moment in seconds since 1970, for people."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M %Z}"
