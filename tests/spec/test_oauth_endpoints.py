"""service.md#oauth, #clients and #tokens: the endpoints, their parameters and responses."""

from __future__ import annotations

import pytest

from tests.spec.conftest import Library
from tests.spec.oauth_client import CALLBACK, answer_in, registered_client


def test_a_client_registers_itself_with_json(library: Library) -> None:
    """service.md#clients: POST /oauth/clients takes a registration as JSON; `scope` is separated by spaces."""
    form = library.client().post("/oauth/clients", data={"redirect_uris": CALLBACK})
    assert (form.status_code, form.json()["error"]) == (400, "invalid_client_metadata")
    metadata = {
        "client_name": "Nightly backup",
        "redirect_uris": [CALLBACK, "https://backup.example/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_post",
        "scope": "library:read users:read",
    }
    answer = library.client().post("/oauth/clients", json=metadata)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert {name: answer.json()[name] for name in metadata} == metadata


@pytest.mark.parametrize(("changes", "error"), [
    ({"grant_type": None}, "invalid_request"),
    ({"grant_type": "password", "username": "backup@library.example", "password": "x"}, "unsupported_grant_type"),
    ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
    ({"code": None}, "invalid_request"),
    ({"code": "unknown"}, "invalid_grant"),
    ({"redirect_uri": None}, "invalid_request"),
    ({"redirect_uri": "http://127.0.0.1:8124/callback"}, "invalid_grant"),
    ({"redirect_uri": CALLBACK + "/"}, "invalid_grant"),
    ({"code_verifier": None}, "invalid_grant"),
    ({"code_verifier": "a" * 48}, "invalid_grant"),
    ({"code_verifier": "ü" * 48}, "invalid_grant"),
    ({"resource": "https://elsewhere.example/api/v3"}, "invalid_target"),
])  # fmt: skip
def test_every_field_of_the_token_request_is_checked(
    library: Library, changes: dict[str, str | None], error: str
) -> None:
    """service.md#oauth: the code flow only; every field but `resource` is required. A refused request leaves the code valid."""
    app = registered_client(library, "none")
    code = app.code()
    answer = app.redeem(**{"code": code, **changes})
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert app.redeem(code).status_code == 200


def test_the_bearer_token_is_sent_in_the_header(library: Library) -> None:
    """service.md#tokens: the token is sent as `Authorization: Bearer`, and in no other place."""
    app = registered_client(library)
    answer = answer_in(app.consent())
    assert (sorted(answer), answer["state"]) == (["code", "state"], "a state & more")
    tokens = app.redeem(answer["code"]).json()
    assert sorted(tokens) == ["access_token", "expires_in", "refresh_token", "scope", "token_type"]
    token = tokens["access_token"]
    assert app.call(token).status_code == 200
    client = library.client("/api/v3")
    assert client.get("/publications", headers={"Authorization": f"bearer {token}"}).status_code == 200
    assert client.get("/publications", params={"access_token": token}).status_code == 401
    for header in (f"Basic {token}", token, "Bearer", f"Bearer {token}x"):
        refused = client.get("/publications", headers={"Authorization": header})
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith('Bearer realm="library"')
