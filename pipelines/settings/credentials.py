"""The secrets of a sign-in: read from the environment when they are needed, and never in a message."""

from __future__ import annotations

from dataclasses import dataclass, field


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
class OAuthClient:
    """Our client at the authorization server (service.md#clients)."""

    client_id: str
    secret: str | None = field(repr=False)
    auth: str
    """`none`, `client_secret_basic` or `client_secret_post`."""
