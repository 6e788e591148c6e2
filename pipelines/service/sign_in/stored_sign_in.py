"""The stored data of one sign-in to version 3: its tokens, its registered client, and whether a refresh is under way (I3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from pipelines.errors import SignInError
from pipelines.service.clock import Clock
from pipelines.service.redaction import keep_secret


@dataclass(frozen=True)
class Registration:
    """A client that registered itself. Its secret is issued once, so it is stored and reused (service.md#clients)."""

    client_id: str
    client_secret: str | None = field(repr=False)
    auth: str
    redirect_uris: tuple[str, ...]
    asked: tuple[str, ...]
    """The scopes that we requested; the server may have granted fewer."""


@dataclass(frozen=True)
class Grant:
    """The tokens of the authorization server, their client and their lifetime."""

    client_id: str
    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    scopes: tuple[str, ...]
    lifetime: float
    """Seconds that the access token lives from `obtained` on."""
    obtained: float
    """When the tokens arrived, in seconds since 1970; they are a little older."""
    signed_in_at: float
    """When the person signed in, in seconds since 1970."""
    refreshes: int = 0

    def left(self, clock: Clock) -> float:
        """Return the seconds that the access token still lives; negative if it has expired.

        If the time of day was set back to before its issue, it counts as expired. Whatever the time of day says, a 401 shows the end.
        """
        age = clock.now().timestamp() - self.obtained
        return self.lifetime - age if age >= 0 else -math.inf


@dataclass(frozen=True)
class StoredSignIn:
    """Everything that is stored of one tenant's sign-in."""

    base_url: str
    tenant: str
    registration: Registration | None = None
    grant: Grant | None = None
    refreshing_since: float | None = None
    """Set before a refresh leaves and unset with its response: if it is set without a running refresh, a response was lost."""
    ended: str | None = None
    """Why the sign-in is over, in the server's words; only a new sign-in helps."""
    version: int = 1


def encode_sign_in(stored: StoredSignIn) -> bytes:
    """Returns a stored sign-in as JSON."""
    return msgspec.json.format(msgspec.json.encode(stored), indent=1)


def decode_sign_in(content: bytes | str, empty: StoredSignIn, place: str) -> StoredSignIn:
    """Returns a stored sign-in from JSON; from now on no message shows its secrets."""
    try:
        stored = _STORED_SIGN_IN_DECODER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        stored = None
    if stored is None or stored.version != empty.version:
        raise SignInError(
            f"The sign-in of '{empty.tenant}' that is stored in {place} cannot be read: it is damaged, or of another version of Bookferry. "
            f"Run `bookferry login {empty.tenant}`, which replaces it."
        )
    if stored.base_url != empty.base_url:  # tokens of one address go to no other address (I2)
        return empty
    keep_secrets(stored)
    return stored


def keep_secrets(stored: StoredSignIn) -> None:
    """Removes every secret of a sign-in from all messages."""
    if stored.grant is not None:
        keep_secret(stored.grant.access_token, stored.grant.refresh_token or "")
    if stored.registration is not None:
        keep_secret(stored.registration.client_secret or "")


def local_time(seconds: float) -> str:
    """Returns a time in seconds since 1970 as local time, for people."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M %Z}"


_STORED_SIGN_IN_DECODER = msgspec.json.Decoder(StoredSignIn)
