"""service.md#oauth, #clients, #tokens and #scopes: sign-in to version 3."""

from __future__ import annotations

import itertools

import httpx
import pytest

from sandbox.oauth.grants import check_bearer
from sandbox.permissions import Caller
from tests.spec.conftest import Library
from tests.spec.oauth_client import (
    CALLBACK,
    answer_in,
    issued_client,
    register,
    registered_client,
)

CONFIDENTIAL = ("client_secret_basic", "client_secret_post")
EVERY_METHOD = (*CONFIDENTIAL, "none")


def error_of(answer: httpx.Response) -> str:
    """Returns the error code of an OAuth error response."""
    error: str = answer.json()["error"]
    return error


# --- v3: OAuth 2.1


@pytest.mark.parametrize(("changes", "error"), [
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "code token"}, "unsupported_response_type"),
    ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"code_challenge": "a" * 44}, "invalid_request"),
    ({"resource": "{base_url}/api/v3/"}, "invalid_target"),
    ({"resource": "{base_url}/mcp"}, "invalid_target"),
    ({"resource": "https://elsewhere.example/api/v3"}, "invalid_target"),
    ({"resource": None}, "invalid_target"),
    ({"resource": None, "scope": "library:read"}, "invalid_target"),
])  # fmt: skip
@pytest.mark.parametrize("method", EVERY_METHOD)
def test_an_authorization_that_is_refused(
    library: Library, method: str, changes: dict[str, str | None], error: str
) -> None:
    """service.md#oauth: the code flow only; PKCE with S256 by each client that registered itself; {base_url}/api/v3 is the only resource.

    A client that omits it gets `invalid_target`: the registered scopes decide, not the requested ones.
    """
    parameters = {name: value and value.replace("{base_url}", library.base_url) for name, value in changes.items()}
    assert answer_in(registered_client(library, method).page(**parameters))["error"] == error


@pytest.mark.parametrize(("address", "is_taken"), [
    ("http://127.0.0.1:1/", True), ("http://127.9.8.7:65535", True), ("http://[::1]:8080/callback?a=b", True),
    ("http://127.0.0.1/callback", False), ("http://localhost:8080/callback", False), ("http://[::2]:8080/", False),
    ("http://example.org:8080/", False), ("http://127.1:8080/", False),
])  # fmt: skip
def test_plain_http_needs_a_loopback_literal_with_a_port(library: Library, address: str, *, is_taken: bool) -> None:
    """service.md#oauth: a redirect address may use plain http with a loopback IP literal and an explicit port; any other is rejected."""
    answer = register(library, redirect_uris=[CALLBACK, address])
    assert answer.status_code == (201 if is_taken else 400)
    assert answer.json().get("error") == (None if is_taken else "invalid_redirect_uri")


@pytest.mark.parametrize("used", EVERY_METHOD)
@pytest.mark.parametrize("registered", EVERY_METHOD)
def test_a_client_authenticates_exactly_as_it_is_registered(library: Library, registered: str, used: str) -> None:
    """service.md#clients: `none`, `client_secret_basic` and `client_secret_post`; a client uses its own method, with its secret."""
    app = registered_client(library, registered)
    assert bool(app.secret) == (registered != "none")
    code = app.code()
    if registered == used:
        assert app.redeem(code).status_code == 200
        code, app.secret = app.code(), app.secret and "wrong"
        if used == "none":
            return
    app.method, app.secret = used, None if used == "none" else app.secret or "guess"
    answer = app.redeem(code)
    assert (answer.status_code, error_of(answer)) == (401, "invalid_client")
    assert "WWW-Authenticate" in answer.headers


@pytest.mark.parametrize("scope", [None, "library:read", "assets:read library:read"])
def test_a_reading_client_without_a_target_gets_a_token_for_the_mcp_server(library: Library, scope: str | None) -> None:
    """service.md#oauth: without `resource`, a client registered for reading only gets a token for the MCP server, with it, one for v3.

    The v3 API refuses the first with 401 and `invalid_token`, `audience mismatch`; a refresh keeps the target. service.md#clients: a
    registration without `scope` is stored with `library:read` and `assets:read`.
    """
    assert register(library, scope=None).json()["scope"] == "library:read assets:read"
    app = registered_client(library, scope=scope)
    assert app.call(app.sign_in()["access_token"]).status_code == (200 if scope != "assets:read" else 403)
    page = app.page(resource=None)
    assert "MCP server" in page.text
    tokens = app.redeem(answer_in(app.post(page))["code"]).json()
    for bound in (tokens, app.refresh(tokens["refresh_token"]).json()):
        refused = app.call(bound["access_token"])
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "Unauthorized")
        assert refused.headers["WWW-Authenticate"] == (
            'Bearer realm="library", error="invalid_token", error_description="audience mismatch"'
        )


@pytest.mark.parametrize("method", CONFIDENTIAL)
def test_an_issued_client_belongs_to_the_account_and_each_connection_to_a_person(library: Library, method: str) -> None:
    """service.md#clients: an issued client is confidential; each connection belongs to a person and has that person's current roles."""
    with pytest.raises(httpx.HTTPStatusError, match="422"):
        issued_client(library, token_endpoint_auth_method="none")
    app = issued_client(library, token_endpoint_auth_method=method)
    reader = add_person(library, "reader@library.example", "librarian")
    own_tokens = app.sign_in()
    app.browser = library.client()
    form = {"email": "reader@library.example", "password": "reader-password"}
    reader_tokens = app.redeem(answer_in(app.consent(form=form))["code"]).json()
    callers = [caller_of(library, tokens["access_token"]) for tokens in (own_tokens, reader_tokens)]
    people = [library.tenant.account.email, "reader@library.example"]
    assert [caller.person["email"] for caller in callers] == people
    assert [caller.roles for caller in callers] == [("admin", "librarian"), ("librarian",)]
    assert app.call(reader_tokens["access_token"], "/users").status_code == 200
    library.tenant.records["users"].change(reader, {"roles": []})
    refused = app.call(reader_tokens["access_token"], "/users")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] != "InsufficientScope"


def test_user_name_and_password_do_not_sign_in_to_v3(library: Library) -> None:
    """service.md#oauth: user name and password do not sign in to v3; the session cookie of v2 does not either."""
    account = library.tenant.account
    with_password = library.client("/api/v3").get("/publications", auth=(account.email, account.password))
    cookies = {"_library_session": library.tenant.session_cookie}
    with_session = library.client("/api/v3", cookies=cookies).get("/publications")
    assert [with_password.status_code, with_session.status_code] == [401, 401]
    assert with_password.headers["WWW-Authenticate"] == 'Bearer realm="library"'


def test_an_access_token_is_valid_for_one_hour(library: Library) -> None:
    """service.md#tokens: an access token is valid for one hour."""
    app = registered_client(library)
    tokens = app.sign_in()
    assert tokens["expires_in"] == 3600
    library.clock.time += 3599.9
    assert app.call(tokens["access_token"]).status_code == 200
    library.clock.time += 0.1
    late = app.call(tokens["access_token"])
    assert late.status_code == 401
    assert 'error="invalid_token"' in late.headers["WWW-Authenticate"]


def test_the_target_at_code_redemption_has_to_match(library: Library) -> None:
    """service.md#oauth: `resource` may be sent with the code, and then has to equal that of the authorization."""
    app = registered_client(library)
    answer = app.redeem(app.code(), resource=f"{library.base_url}/mcp")
    assert (answer.status_code, error_of(answer)) == (400, "invalid_target")
    assert app.redeem(app.code(), resource=f"{library.base_url}/api/v3").status_code == 200
    assert app.redeem(app.code()).status_code == 200


SUBSETS = ["library:read", "library:read users:read", "assets:read tasks:read"]


@pytest.mark.parametrize(("requested", "registered", "released"), list(itertools.product(SUBSETS, repeat=3)))
def test_a_token_carries_the_intersection(library: Library, requested: str, registered: str, released: str) -> None:
    """service.md#scopes: a token has those scopes that were requested, registered and released by the person."""
    app = registered_client(library, scope=registered)
    page = app.page(scope=requested)
    offered = set(requested.split()) & set(registered.split())
    if not offered:
        assert answer_in(page)["error"] == "invalid_scope"
        return
    answer = app.post(page, scope=released.split())
    carried = offered & set(released.split())
    if not carried:
        assert answer.status_code == 422
        return
    tokens = app.redeem(answer_in(answer)["code"]).json()
    assert set(tokens["scope"].split()) == carried
    assert caller_of(library, tokens["access_token"]).scopes == carried
    expected = 200 if "library:read" in carried else 403
    assert app.call(tokens["access_token"]).status_code == expected


# --- Clients


def test_registrations_are_bounded_per_day(library: Library) -> None:
    """service.md#clients: the number of registrations of a tenant per day is limited."""
    library.change(oauth={"registrations_per_day": 3})
    first = registered_client(library)
    library.clock.time += 3600
    assert register(library, redirect_uris=[]).status_code == 400  # a refused one does not count
    assert [register(library).status_code for _ in range(3)] == [201, 201, 429]
    refused = register(library)
    assert refused.json()["error"]["code"] == "TooManyRequests"
    assert refused.headers["Retry-After"] == str(23 * 3600)
    assert first.sign_in()
    library.clock.time += 23 * 3600
    assert [register(library).status_code for _ in range(2)] == [201, 429]


def test_revocation_ends_all_connections_at_once(library: Library) -> None:
    """service.md#clients: revoking a client ends all its connections at once."""
    app = issued_client(library)
    first_tokens, second_tokens = app.sign_in(), app.sign_in()
    code = app.code()
    library.control("POST", "oauth/clients/revoke", {"client_id": app.id})
    assert [app.call(tokens["access_token"]).status_code for tokens in (first_tokens, second_tokens)] == [401, 401]
    assert app.refresh(first_tokens["refresh_token"]).status_code == 401
    assert app.redeem(code).status_code == 401
    assert app.page().status_code == 400


# --- v3 scopes


def test_old_tokens_received_the_asset_scopes(library: Library) -> None:
    """service.md#scopes: tokens older than the asset scopes received them for `library:read` and `library:write`."""
    for scopes, expected in (
        (["library:read"], {"library:read", "assets:read"}),
        (["library:write"], {"library:write", "assets:write"}),
        (["users:read"], {"users:read"}),
    ):
        token = library.token(scopes=scopes, before_assets=True)
        assert caller_of(library, token).scopes == expected
        assert caller_of(library, library.token(scopes=scopes)).scopes == set(scopes)


# --- helpers


def caller_of(library: Library, token: str) -> Caller:
    """Returns the caller whom the service sees behind a token."""
    return check_bearer(library.tenant, f"Bearer {token}")


def add_person(library: Library, email: str, *roles: str) -> int:
    """Adds another account; returns its id."""
    account = {"email": email, "name": "A Reader", "roles": list(roles), "password": "reader-password", "avatar": None}
    number: int = library.tenant.records["users"].create(account)["id"]
    return number
