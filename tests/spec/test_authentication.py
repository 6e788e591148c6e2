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
    EVERYTHING,
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


@pytest.mark.parametrize("form", [
    {"grant_type": "password", "username": "backup@library.example", "password": "sandbox-password"},
    {"grant_type": "client_credentials"},
    {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "x"},
])  # fmt: skip
def test_only_the_authorization_code_flow_is_accepted(library: Library, form: dict[str, str]) -> None:
    """service.md#oauth: v3 accepts the authorization code flow only."""
    answer = registered_client(library).ask(form)
    assert (answer.status_code, error_of(answer)) == (400, "unsupported_grant_type")


@pytest.mark.parametrize("response_type", ["token", "code token", "id_token"])
def test_no_token_comes_from_the_authorization_itself(library: Library, response_type: str) -> None:
    """service.md#oauth: v3 accepts the authorization code flow only; the authorization endpoint gives no token."""
    answer = answer_in(registered_client(library).page(response_type=response_type))
    assert answer["error"] == "unsupported_response_type"


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


def test_a_refresh_token_is_renewed_on_every_use(library: Library) -> None:
    """service.md#tokens: an access token comes with a refresh token; each use replaces the refresh token."""
    app = registered_client(library)
    tokens = [app.sign_in()]
    for _ in range(3):
        answer = app.refresh(tokens[-1]["refresh_token"])
        assert answer.status_code == 200
        tokens.append(answer.json())
        assert app.call(tokens[-1]["access_token"]).status_code == 200
    assert len({each["refresh_token"] for each in tokens}) == 4
    assert len({each["access_token"] for each in tokens}) == 4


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_pkce_is_required_of_every_self_registered_client(library: Library, method: str) -> None:
    """service.md#oauth: every client that registered itself has to use PKCE with S256, public or confidential."""
    app = registered_client(library, method)
    without = answer_in(app.page(code_challenge=None, code_challenge_method=None))
    assert without["error"] == "invalid_request"
    assert "code_challenge" in without["error_description"]
    assert app.redeem(app.code()).status_code == 200


@pytest.mark.parametrize("changes", [
    {"code_challenge_method": "plain"},
    {"code_challenge_method": None},
    {"code_challenge_method": "s256"},
    {"code_challenge": "short"},
    {"code_challenge": "a" * 44},
    {"code_challenge": "a" * 42 + "="},
    {"code_challenge": None},
])  # fmt: skip
def test_the_challenge_is_made_with_s256(library: Library, changes: dict[str, str | None]) -> None:
    """service.md#oauth: PKCE uses S256, whose challenge has 43 characters."""
    assert answer_in(registered_client(library).page(**changes))["error"] == "invalid_request"


@pytest.mark.parametrize("verifier", ["a" * 48, None, "", "short", "ü" * 48])
def test_a_code_needs_its_verifier(library: Library, verifier: str | None) -> None:
    """service.md#oauth: PKCE is required: a code cannot be redeemed without the verifier of its challenge."""
    app = registered_client(library)
    code = app.code()
    answer = app.redeem(code, code_verifier=verifier)
    assert (answer.status_code, error_of(answer)) == (400, "invalid_grant")


@pytest.mark.parametrize("address", [
    "http://127.0.0.1:8080/callback", "http://127.0.0.1:1/", "http://127.9.8.7:65535", "http://[::1]:8080/callback?a=b",
])  # fmt: skip
def test_plain_http_on_a_loopback_literal_with_a_port(library: Library, address: str) -> None:
    """service.md#oauth: a redirect address may use plain http with a loopback IP literal and an explicit port."""
    answer = register(library, redirect_uris=[address])
    assert answer.status_code == 201
    assert answer.json()["redirect_uris"] == [address]


@pytest.mark.parametrize("address", [
    "http://127.0.0.1/callback", "http://127.0.0.1:/callback", "http://[::1]/callback", "http://localhost/callback", "http://192.168.0.1:8080/",
    "http://example.org:8080/", "http://[::2]:8080/", "http://128.0.0.1:80/", "http://0.0.0.0:8080/", "http://127.1:8080/",
])  # fmt: skip
def test_other_plain_http_is_rejected(library: Library, address: str) -> None:
    """service.md#oauth: any other redirect address with plain http is rejected."""
    answer = register(library, redirect_uris=[CALLBACK, address])
    assert (answer.status_code, error_of(answer)) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize("resource", [
    "{base_url}/api/v3/", "{base_url}/api/v2", "{base_url}", "{base_url}/mcp", "https://elsewhere.example/api/v3", "x",
])  # fmt: skip
def test_another_target_is_refused(library: Library, resource: str) -> None:
    """service.md#oauth: the only resource is {base_url}/api/v3; another one is `invalid_target`."""
    wanted = resource.replace("{base_url}", library.base_url)
    assert answer_in(registered_client(library).page(resource=wanted))["error"] == "invalid_target"


def test_the_target_at_code_redemption_has_to_match(library: Library) -> None:
    """service.md#oauth: `resource` may be sent with the code, and then has to equal that of the authorization."""
    app = registered_client(library)
    answer = app.redeem(app.code(), resource=f"{library.base_url}/mcp")
    assert (answer.status_code, error_of(answer)) == (400, "invalid_target")
    assert app.redeem(app.code(), resource=f"{library.base_url}/api/v3").status_code == 200
    assert app.redeem(app.code()).status_code == 200


@pytest.mark.parametrize("scope", [EVERYTHING, "library:read tasks:read", "users:read"])
def test_a_missing_target_is_invalid_target(library: Library, scope: str) -> None:
    """service.md#oauth: a client that registered itself and omits `resource` gets `invalid_target`.

    The registered scopes decide, not the requested ones.
    """
    app = registered_client(library, scope=scope)
    assert answer_in(app.page(resource=None))["error"] == "invalid_target"
    assert answer_in(app.page(resource=None, scope=scope.split(" ", maxsplit=1)[0]))["error"] == "invalid_target"


@pytest.mark.parametrize("scope", [None, "library:read", "assets:read", "assets:read library:read"])
def test_a_reading_client_without_a_target_gets_a_token_for_the_mcp_server(library: Library, scope: str | None) -> None:
    """service.md#oauth: without `resource`, a client registered for reading only gets a token for the MCP server.

    The v3 API refuses that token with 401 and `invalid_token`, `audience mismatch`.
    """
    app = registered_client(library, scope=scope)
    page = app.page(resource=None)
    assert "MCP server" in page.text
    tokens = app.redeem(answer_in(app.post(page))["code"]).json()
    refused = app.call(tokens["access_token"])
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == (
        'Bearer realm="library", error="invalid_token", error_description="audience mismatch"'
    )
    assert refused.json()["error"]["code"] == "Unauthorized"


def test_a_reading_client_with_a_target_gets_a_token_for_it(library: Library) -> None:
    """service.md#oauth: with `resource`, a client registered for reading only gets a token for it. A refresh keeps the target."""
    app = registered_client(library, scope=None)
    tokens = app.sign_in()
    assert app.call(tokens["access_token"]).status_code == 200
    bound = app.sign_in(resource=None)
    renewed = app.refresh(bound["refresh_token"]).json()
    assert app.call(renewed["access_token"]).status_code == 401


def test_a_registration_without_scope_is_stored_as_exactly_two(library: Library) -> None:
    """service.md#clients: a registration without `scope` is stored with `library:read` and `assets:read`."""
    assert register(library, scope=None).json()["scope"] == "library:read assets:read"


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


@pytest.mark.parametrize("method", CONFIDENTIAL)
def test_a_confidential_client_authenticates_with_its_secret(library: Library, method: str) -> None:
    """service.md#clients: a confidential client authenticates with its secret."""
    app = registered_client(library, method)
    assert app.sign_in()
    app.secret = "wrong"
    answer = app.redeem(app.code())
    assert (answer.status_code, error_of(answer)) == (401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.parametrize(("registered", "used"), [
    (one, other) for one in EVERY_METHOD for other in EVERY_METHOD if one != other
])  # fmt: skip
def test_a_client_authenticates_exactly_as_it_is_registered(library: Library, registered: str, used: str) -> None:
    """service.md#clients: the methods are `none`, `client_secret_basic` and `client_secret_post`; a client uses its registered one."""
    app = registered_client(library, registered)
    assert bool(app.secret) == (registered != "none")
    code = app.code()
    app.method, app.secret = used, None if used == "none" else app.secret or "guess"
    answer = app.redeem(code)
    assert (answer.status_code, error_of(answer)) == (401, "invalid_client")
    assert "WWW-Authenticate" in answer.headers


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


def test_an_issued_client_belongs_to_the_account_and_each_connection_to_a_person(library: Library) -> None:
    """service.md#clients: the account owns an issued client; each connection belongs to a person and has that person's roles."""
    app = issued_client(library)
    add_person(library, "reader@library.example", "librarian")
    own = app.sign_in()
    app.browser = library.client()
    other = app.redeem(
        answer_in(app.consent(form={"email": "reader@library.example", "password": "reader-password"}))["code"]
    ).json()
    grants = library.control("GET", "oauth/grants").json()
    assert {grant["person"] for grant in grants} == {library.tenant.account.email, "reader@library.example"}
    callers = [caller_of(library, each["access_token"]) for each in (own, other)]
    assert [caller.person["email"] for caller in callers] == [library.tenant.account.email, "reader@library.example"]
    assert [caller.roles for caller in callers] == [("admin", "librarian"), ("librarian",)]


def test_roles_are_the_current_roles_of_the_person(library: Library) -> None:
    """service.md#clients: a connection has its person's roles. A role that was removed is gone for existing tokens, too."""
    reader = add_person(library, "reader@library.example", "librarian")
    app = issued_client(library)
    tokens = app.redeem(
        answer_in(app.consent(form={"email": "reader@library.example", "password": "reader-password"}))["code"]
    ).json()
    assert "users:read" in tokens["scope"]
    assert app.call(tokens["access_token"], "/users").status_code == 200
    library.tenant.records["users"].change(reader, {"roles": []})
    assert caller_of(library, tokens["access_token"]).roles == ()
    refused = app.call(tokens["access_token"], "/users")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] != "InsufficientScope"


@pytest.mark.parametrize("method", CONFIDENTIAL)
def test_an_issued_client_is_confidential(library: Library, method: str) -> None:
    """service.md#clients: an issued client is confidential."""
    app = issued_client(library, token_endpoint_auth_method=method)
    assert (app.method, bool(app.secret)) == (method, True)
    assert app.sign_in()
    with pytest.raises(httpx.HTTPStatusError, match="422"):
        issued_client(library, token_endpoint_auth_method="none")


def test_revocation_ends_all_connections_at_once(library: Library) -> None:
    """service.md#clients: revoking a client ends all its connections at once."""
    app = issued_client(library)
    one, two = app.sign_in(), app.sign_in()
    code = app.code()
    library.control("POST", "oauth/clients/revoke", {"client_id": app.id})
    assert [app.call(each["access_token"]).status_code for each in (one, two)] == [401, 401]
    assert app.refresh(one["refresh_token"]).status_code == 401
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
