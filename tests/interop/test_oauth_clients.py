"""OAuth clients of other projects sign in to version 3: Authlib and requests-oauthlib.

Each one registers, sends a person to the consent page, exchanges the code with PKCE, calls the API, and refreshes.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import consent

with warnings.catch_warnings(record=True):  # Authlib warns about httpx on import
    from authlib.integrations.base_client import OAuthError
    from authlib.integrations.httpx_client import OAuth2Client

CALLBACK = "http://127.0.0.1:8123/callback"
SCOPE = "library:read users:read"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxProcess]:
    options = ("--tenant", "library=real:30", "--requests-per-minute", "0", "--oauth", "registrations_per_day=1000")
    with SandboxProcess(*options) as running:
        yield running


@pytest.fixture(autouse=True)
def _plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both libraries want https; these variables allow plain http on a loopback address."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")


def registered(sandbox: SandboxProcess, method: str) -> dict[str, Any]:
    """Registers a client (RFC 7591); none of the libraries has a call for it."""
    metadata = {
        "client_name": "Interop",
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "scope": SCOPE,
    }
    client: dict[str, Any] = httpx.post(f"{sandbox.base_url()}/oauth/clients", json=metadata).raise_for_status().json()
    return client


def test_authlib(sandbox: SandboxProcess) -> None:
    method = "client_secret_basic"
    base_url, client = sandbox.base_url(), registered(sandbox, method)
    verifier = secrets.token_urlsafe(48)
    with OAuth2Client(
        client["client_id"],
        client.get("client_secret"),
        token_endpoint_auth_method=method,
        redirect_uri=CALLBACK,
        scope=SCOPE,
        code_challenge_method="S256",
        token_endpoint=f"{base_url}/oauth/token",
    ) as session:
        url, state = session.create_authorization_url(
            f"{base_url}/oauth/authorize", code_verifier=verifier, resource=f"{base_url}/api/v3"
        )
        token = session.fetch_token(
            f"{base_url}/oauth/token",
            authorization_response=consent(url, sandbox, SCOPE.split()),
            code_verifier=verifier,
            state=state,
            resource=f"{base_url}/api/v3",
        )
        assert token["scope"] == SCOPE
        assert session.get(f"{base_url}/api/v3/publications").headers["X-Total"] == "30"
        renewed = session.refresh_token(f"{base_url}/oauth/token")
        assert renewed["refresh_token"] != token["refresh_token"]
        assert session.get(f"{base_url}/api/v3/publications/1").status_code == 200
        with pytest.raises(OAuthError, match="invalid_grant"):
            session.refresh_token(f"{base_url}/oauth/token", refresh_token=token["refresh_token"])
