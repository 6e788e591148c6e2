"""The secrets of a sign-in: read from the environment when they are needed, and never in a message."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.settings.tenant import ClientAuth


@dataclass(frozen=True)
class BasicCredentials:
    """User name and password of a v2 account (HTTP Basic; service.md#v2)."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class SessionCookie:
    """Value of the cookie `_library_session` from a browser session that is signed in (service.md#v2)."""

    value: str = field(repr=False)


@dataclass(frozen=True)
class IssuedClient:
    """An OAuth client that an administrator issued; it belongs to the account, not to a person (service.md#clients)."""

    client_id: str
    secret: str | None = field(repr=False)
    auth: ClientAuth
