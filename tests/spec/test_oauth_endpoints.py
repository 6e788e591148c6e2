"""service.md#oauth, #clients and #tokens: the endpoints, their parameters and responses."""

from __future__ import annotations

import re

import pytest

from tests.spec.conftest import Library
from tests.spec.oauth_client import CALLBACK, answer_in, registered_client

PARAMETERS = {
    "response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource",
}  # fmt: skip


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


def test_the_authorization_request(library: Library) -> None:
    """service.md#oauth: the eight parameters of an authorization request."""
    app = registered_client(library)
    assert set(app.request(scope="library:read")) == PARAMETERS
    page = app.page(scope="library:read")
    assert page.status_code == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    answer = answer_in(app.post(page))
    assert sorted(answer) == ["code", "state"]
    assert answer["state"] == "a state & more"


@pytest.mark.parametrize(("changes", "error"), [
    ({"grant_type": None}, "invalid_request"),
    ({"grant_type": "implicit"}, "unsupported_grant_type"),
    ({"code": None}, "invalid_request"),
    ({"code": "unknown"}, "invalid_grant"),
    ({"redirect_uri": None}, "invalid_request"),
    ({"redirect_uri": "http://127.0.0.1:8124/callback"}, "invalid_grant"),
    ({"redirect_uri": CALLBACK + "/"}, "invalid_grant"),
    ({"code_verifier": None}, "invalid_grant"),
    ({"resource": "https://elsewhere.example/api/v3"}, "invalid_target"),
])  # fmt: skip
def test_every_field_of_the_token_request_is_checked(
    library: Library, changes: dict[str, str | None], error: str
) -> None:
    """service.md#oauth: every field of a token request but `resource` is required. A refused request leaves the code valid."""
    app = registered_client(library, "none")
    code = app.code()
    answer = app.redeem(**{"code": code, **changes})
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert app.redeem(code).status_code == 200


def test_the_token_response(library: Library) -> None:
    """service.md#tokens: the response has `access_token` and `refresh_token`; the other members are those of OAuth."""
    tokens = registered_client(library).sign_in()
    assert sorted(tokens) == ["access_token", "expires_in", "refresh_token", "scope", "token_type"]
    assert tokens["token_type"] == "Bearer"
    assert all(re.fullmatch(r"[\w-]{43}", tokens[name]) for name in ("access_token", "refresh_token"))


def test_the_bearer_token_is_sent_in_the_header(library: Library) -> None:
    """service.md#tokens: the token is sent as `Authorization: Bearer`, and in no other place."""
    app = registered_client(library)
    token = app.sign_in()["access_token"]
    assert app.call(token).status_code == 200
    client = library.client("/api/v3")
    assert client.get("/publications", headers={"Authorization": f"bearer {token}"}).status_code == 200
    assert client.get("/publications", params={"access_token": token}).status_code == 401
    for other in (f"Basic {token}", token, "Bearer", f"Bearer {token}x"):
        refused = client.get("/publications", headers={"Authorization": other})
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith('Bearer realm="library"')
