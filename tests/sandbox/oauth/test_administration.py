"""The control endpoint for clients and grants, and the state file after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from sandbox.oauth.tokens import check_bearer
from sandbox.permissions import SCOPES
from sandbox.tenants import Account
from tests.sandbox.process import SandboxProcess
from tests.spec.conftest import Library, plain_transport
from tests.spec.oauth_client import OAuthClient, issued_client, registered_client


def control(library: Library, method: str, path: str, body: Any = None) -> httpx.Response:
    with httpx.Client(transport=plain_transport()) as client:
        return client.request(method, f"{library.origin}/_control/{path}", json=body)


def test_a_client_that_is_not_there_can_be_neither_rotated_nor_revoked(library: Library) -> None:
    own = registered_client(library)
    for body in ({"client_id": "unknown"}, {"client_id": own.id}, {}):
        assert control(library, "POST", "oauth/clients/rotate", body).status_code == 404
    app = issued_client(library)
    assert control(library, "POST", "oauth/clients/revoke", {"client_id": app.id}).status_code == 200
    assert control(library, "POST", "oauth/clients/revoke", {"client_id": app.id}).status_code == 404
    assert control(library, "POST", "oauth/clients/rotate", {"client_id": app.id}).status_code == 404
    assert control(library, "GET", "oauth/clients").json()[0]["revoked_at"] == library.clock.time


def test_a_later_rotation_does_not_lengthen_the_life_of_an_old_secret(library: Library) -> None:
    app = issued_client(library)
    control(library, "POST", "oauth/clients/rotate", {"client_id": app.id, "changeover_seconds": 60})
    library.clock.time += 60
    rotated = control(library, "POST", "oauth/clients/rotate", {"client_id": app.id, "changeover_seconds": 600})
    assert [each["expires_at"] for each in rotated.json()["secrets"]] == [library.clock.time + 600, None]
    assert app.ask({"grant_type": "refresh_token", "refresh_token": "x"}).status_code == 401


def test_a_token_of_the_control_endpoint(library: Library) -> None:
    token = library.token()
    assert check_bearer(library.tenant, f"Bearer {token}").scopes == set(SCOPES)
    for wrong in ({"scopes": ["all"]}, {"scopes": "library:read"}, {"person": "nobody"}, {"surface": "x"}, {"x": 1}):
        assert control(library, "POST", "tokens", wrong).status_code == 422


class Remote(Library):
    """A library in another process."""

    def __init__(self, sandbox: SandboxProcess) -> None:
        account = Account(sandbox.user, sandbox.password)
        tenant: Any = SimpleNamespace(name="library", account=account)
        clock: Any = None
        super().__init__(tenant, sandbox.url, clock)


@pytest.mark.long
def test_what_was_granted_survives_a_kill(tmp_path: Path) -> None:
    """Clients, secrets, grants and tokens are in the state file and work on another port, too."""
    options = ("--tenant", "library=empty", "--requests-per-minute", "0", "--state", str(tmp_path / "state.db"))
    with SandboxProcess(*options) as sandbox, closing(Remote(sandbox)) as library:
        app = registered_client(library)
        tokens = app.sign_in()
        code = app.code()
        sandbox.kill()
    with SandboxProcess(*options) as sandbox, closing(Remote(sandbox)) as library:
        app = OAuthClient(library, app.id, app.secret, verifier=app.verifier)
        assert app.call(tokens["access_token"]).status_code == 200
        renewed = app.refresh(tokens["refresh_token"])
        assert renewed.status_code == 200
        assert app.redeem(code).status_code == 200
        assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
        assert app.call(renewed.json()["access_token"]).status_code == 401


@contextmanager
def closing(library: Remote) -> Iterator[Remote]:
    with library.closing:
        yield library
