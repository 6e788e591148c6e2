"""Secrets of a sign-in, as the environment holds them: read when they are needed, never shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.settings.tenant import ClientAuth


@dataclass(frozen=True)
class BasicCredentials:
    """User name and password of a v2 account (service-api.md, v2: "HTTP Basic authentication")."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class SessionCookie:
    """Value of `_library_session` (service-api.md, v2: "from an already signed-in browser session")."""

    value: str = field(repr=False)


@dataclass(frozen=True)
class IssuedClient:
    """A client that an administrator issued (service-api.md, Clients: "owned by the account, not by a person")."""

    client_id: str
    secret: str | None = field(repr=False)
    auth: ClientAuth
    pkce: bool
