"""service-api.md, "OAuth endpoints", "OAuth client", "Token response", and what "Errors" and "Limits" say of them."""

from __future__ import annotations

import re

import pytest

from tests.spec.conftest import Library
from tests.spec.program import CALLBACK, answer_in, challenge_of, program, register

PARAMETERS = {
    "response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource",
}  # fmt: skip


def test_a_client_registers_itself_with_json(library: Library) -> None:
    """Rule: "POST /oauth/clients: self-registration of a client (JSON body)"."""
    assert register(library).status_code == 201
    form = library.client().post("/oauth/clients", data={"redirect_uris": CALLBACK})
    assert (form.status_code, form.json()["error"]) == (400, "invalid_client_metadata")


def test_the_registration_fields(library: Library) -> None:
    """Rule.

    "Registration fields: `client_name`, `redirect_uris` (array), `grant_types` (array), `response_types` (array),
    `token_endpoint_auth_method`, `scope` (space-delimited string)."
    """
    metadata = {
        "client_name": "Nightly backup",
        "redirect_uris": [CALLBACK, "https://backup.example/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_post",
        "scope": "library:read users:read",
    }
    answer = library.client().post("/oauth/clients", json=metadata).json()
    assert {name: answer[name] for name in metadata} == metadata


@pytest.mark.parametrize(("method", "has_secret"), [
    ("client_secret_basic", True), ("client_secret_post", True), ("none", False),
])  # fmt: skip
def test_the_response_carries_an_id_and_perhaps_a_secret(library: Library, method: str, has_secret: bool) -> None:
    """Rule: "The response carries `client_id` and, for a confidential client, `client_secret`."."""
    answer = register(library, token_endpoint_auth_method=method)
    assert answer.json()["client_id"]
    assert bool(answer.json().get("client_secret")) == has_secret
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_authorization_request(library: Library) -> None:
    """Rule.

    "Authorize query parameters: `response_type` (`code`), `client_id`, `redirect_uri`, `scope`, `state`, `code_challenge`,
    `code_challenge_method` (`S256`), `resource`."
    """
    app = program(library)
    assert set(app.request(scope="library:read")) == PARAMETERS
    page = app.page(scope="library:read")
    assert page.status_code == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    answer = answer_in(app.post(page))
    assert sorted(answer) == ["code", "state"]
    assert answer["state"] == "a state & more"


def test_the_token_request(library: Library) -> None:
    """Rule.

    "Token request fields: `grant_type` (`authorization_code`), `code`, `redirect_uri`, `client_id`, `code_verifier`, `resource`
    (optional here; when sent it must equal the resource of the authorization)."
    """
    app = program(library, "none")
    for resource in (None, f"{library.base_url}/api/v3"):
        form = {
            "grant_type": "authorization_code",
            "code": app.code(),
            "redirect_uri": CALLBACK,
            "client_id": app.id,
            "code_verifier": app.verifier,
            **({"resource": resource} if resource else {}),
        }
        answer = library.client().post("/oauth/token", data=form)
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "no-store"


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
def test_every_field_of_the_token_request_counts(library: Library, changes: dict[str, str | None], error: str) -> None:
    """Rule: the token request fields, of which only `resource` is optional. What is refused leaves the code as it was."""
    app = program(library, "none")
    code = app.code()
    answer = app.redeem(**{"code": code, **changes})
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert app.redeem(code).status_code == 200


def test_the_token_response(library: Library) -> None:
    """Rule: "Carries `access_token` and `refresh_token`."; the rest is OAuth's own."""
    tokens = program(library).sign_in()
    assert sorted(tokens) == ["access_token", "expires_in", "refresh_token", "scope", "token_type"]
    assert tokens["token_type"] == "Bearer"
    assert all(re.fullmatch(r"[\w-]{43}", tokens[name]) for name in ("access_token", "refresh_token"))


def test_the_bearer_token_is_sent_in_the_header(library: Library) -> None:
    """Rule: "The bearer token is sent in `Authorization: Bearer <ACCESS_TOKEN>`."; nowhere else."""
    app = program(library)
    token = app.sign_in()["access_token"]
    assert app.call(token).status_code == 200
    client = library.client("/api/v3")
    assert client.get("/publications", headers={"Authorization": f"bearer {token}"}).status_code == 200
    assert client.get("/publications", params={"access_token": token}).status_code == 401
    for other in (f"Basic {token}", token, "Bearer", f"Bearer {token}x"):
        refused = client.get("/publications", headers={"Authorization": other})
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith('Bearer realm="library"')


def test_a_missing_resource_is_an_authorization_server_error(library: Library) -> None:
    """Rule: "Authorization server error: `error=invalid_target` when `resource` is missing"; it goes to the redirect address."""
    answer = program(library).page(resource=None)
    assert answer.headers["Location"].startswith(CALLBACK + "?error=invalid_target&")
    assert answer_in(answer)["state"] == "a state & more"


def test_requests_for_tokens_count_for_the_rate(library: Library) -> None:
    """Assumption: "about 60 requests per minute" counts what is below /oauth/ too."""
    library.change(requests_per_minute=2)
    app = library.client()
    statuses = [app.post("/oauth/token").status_code, app.get("/oauth/authorize").status_code]
    limited = app.post("/oauth/clients", json={})
    assert [*statuses, limited.status_code] == [400, 400, 429]
    assert limited.json()["error"]["code"] == "TooManyRequests"


@pytest.mark.parametrize(("method", "path"), [
    ("GET", "/oauth/clients"), ("GET", "/oauth/token"), ("DELETE", "/oauth/authorize"), ("PUT", "/oauth/clients"),
])  # fmt: skip
def test_each_endpoint_has_its_methods(library: Library, method: str, path: str) -> None:
    """Rule: the table of the OAuth endpoints."""
    assert library.client().request(method, path).status_code == 405


def test_there_is_nothing_else(library: Library) -> None:
    """Rule: the table of the OAuth endpoints. No discovery document is described, so there is none."""
    for path in ("/oauth/revoke", "/oauth/clients/1", "/oauth/", "/.well-known/oauth-authorization-server"):
        assert library.client().get(path).status_code == 404


def test_the_challenge_of_the_rfc() -> None:
    """RFC 7636, appendix B: the tests and the service mean the same S256."""
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
