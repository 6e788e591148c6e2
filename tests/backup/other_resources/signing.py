"""A sign-in to v3 without a browser: a token of the sandbox's control endpoint, stored where `bookferry login` stores it."""

from __future__ import annotations

from pathlib import Path

from pipelines.service.clock import SystemClock
from pipelines.service.sign_in.stored_sign_in import Grant, StoredSignIn
from pipelines.service.sign_in.token_store import open_tokens
from pipelines.settings.config_file import load_settings
from tests.sandbox.process import SandboxProcess

READ = ("library:read", "assets:read", "users:read", "tasks:read")
"""The scopes for a backup of everything."""


def keep_token(config: Path, tenant: str, token: str, scopes: tuple[str, ...] = READ) -> None:
    """Store an access token as the sign-in of a tenant with the configured client `test`."""
    settings, clock = load_settings(config), SystemClock()
    grant = Grant(
        client_id="test",
        access_token=token,
        refresh_token=None,
        scopes=scopes,
        lifetime=3600,
        obtained=clock.now().timestamp(),
        signed_in_at=clock.now().timestamp(),
    )
    base_url = settings.tenant(tenant).base_url
    with open_tokens(settings, tenant).leased(clock) as leased:
        leased.write(StoredSignIn(base_url=base_url, tenant=tenant, grant=grant))


def sign_in(
    config: Path, tenant: str, sandbox: SandboxProcess, library: str = "library", scopes: tuple[str, ...] = READ
) -> str:
    """Sign in to a library of the sandbox with these scopes. Returns the token."""
    answer = sandbox.control("POST", "tokens", {"tenant": library, "scopes": list(scopes)})
    token = str(answer["access_token"])
    keep_token(config, tenant, token, scopes)
    return token
