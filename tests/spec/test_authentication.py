"""service-api.md, "Authentication": "v3: OAuth 2.1", "Clients", "v3 scopes"."""

from __future__ import annotations

import itertools
import json

import httpx
import pytest

from sandbox.callers import Caller
from sandbox.oauth.tokens import check_bearer
from tests.spec.conftest import Library
from tests.spec.program import (
    CALLBACK,
    EVERYTHING,
    answer_in,
    issued_program,
    program,
    register,
)

CONFIDENTIAL = ("client_secret_basic", "client_secret_post")
EVERY_METHOD = (*CONFIDENTIAL, "none")


def error_of(answer: httpx.Response) -> str:
    """OAuth's own error."""
    error: str = answer.json()["error"]
    return error


# --- v3: OAuth 2.1


@pytest.mark.parametrize("form", [
    {"grant_type": "password", "username": "backup@library.example", "password": "sandbox-password"},
    {"grant_type": "client_credentials"},
    {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "x"},
])  # fmt: skip
def test_only_the_authorization_code_flow_is_accepted(library: Library, form: dict[str, str]) -> None:
    """Rule 1: "Only the OAuth 2.1 authorization code flow is accepted."."""
    answer = program(library).ask(form)
    assert (answer.status_code, error_of(answer)) == (400, "unsupported_grant_type")


@pytest.mark.parametrize("response_type", ["token", "code token", "id_token"])
def test_no_token_comes_from_the_authorization_itself(library: Library, response_type: str) -> None:
    """Rule 1: "Only the OAuth 2.1 authorization code flow is accepted."."""
    answer = answer_in(program(library).page(response_type=response_type))
    assert answer["error"] == "unsupported_response_type"


def test_user_name_and_password_do_not_sign_in_to_v3(library: Library) -> None:
    """Rule 1: "No sign-in with user name and password exists for v3."; the v2 session does not open it either."""
    account = library.tenant.account
    with_password = library.client("/api/v3").get("/publications", auth=(account.email, account.password))
    cookies = {"_library_session": library.tenant.session_cookie}
    with_session = library.client("/api/v3", cookies=cookies).get("/publications")
    assert [with_password.status_code, with_session.status_code] == [401, 401]
    assert with_password.headers["WWW-Authenticate"] == 'Bearer realm="library"'


def test_an_access_token_is_valid_for_one_hour(library: Library) -> None:
    """Rule 2: "An access token is valid for one hour."."""
    app = program(library)
    tokens = app.sign_in()
    assert tokens["expires_in"] == 3600
    library.clock.time += 3599.9
    assert app.call(tokens["access_token"]).status_code == 200
    library.clock.time += 0.1
    late = app.call(tokens["access_token"])
    assert late.status_code == 401
    assert 'error="invalid_token"' in late.headers["WWW-Authenticate"]


def test_a_refresh_token_is_renewed_on_every_use(library: Library) -> None:
    """Rule 2: "It comes with a refresh token that is renewed on every use."."""
    app = program(library)
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
    """Rule 3: "PKCE with method `S256` is required of every self-registered client, public or confidential."."""
    app = program(library, method)
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
    """Rule 3: "PKCE with method `S256`"; the challenge is the 43 characters that the method gives."""
    assert answer_in(program(library).page(**changes))["error"] == "invalid_request"


@pytest.mark.parametrize("verifier", ["a" * 48, None, "", "short", "ü" * 48])
def test_a_code_needs_its_verifier(library: Library, verifier: str | None) -> None:
    """Rule 3: "PKCE ... is required": a code without the verifier of its challenge is worth nothing."""
    app = program(library)
    code = app.code()
    answer = app.redeem(code, code_verifier=verifier)
    assert (answer.status_code, error_of(answer)) == (400, "invalid_grant")


@pytest.mark.parametrize("address", [
    "http://127.0.0.1:8080/callback", "http://127.0.0.1:1/", "http://127.9.8.7:65535", "http://[::1]:8080/callback?a=b",
])  # fmt: skip
def test_plain_http_on_a_loopback_literal_with_a_port(library: Library, address: str) -> None:
    """Rule 3: "Plain-http redirect addresses are allowed only for loopback IP literals with an explicit port."."""
    answer = register(library, redirect_uris=[address])
    assert answer.status_code == 201
    assert answer.json()["redirect_uris"] == [address]


@pytest.mark.parametrize("address", [
    "http://127.0.0.1/callback", "http://127.0.0.1:/callback", "http://[::1]/callback", "http://192.168.0.1:8080/",
    "http://example.org:8080/", "http://[::2]:8080/", "http://128.0.0.1:80/", "http://0.0.0.0:8080/", "http://127.1:8080/",
])  # fmt: skip
def test_other_plain_http_is_rejected(library: Library, address: str) -> None:
    """Rule 3: "Plain-http redirect addresses are allowed only for loopback IP literals with an explicit port."."""
    answer = register(library, redirect_uris=[CALLBACK, address])
    assert (answer.status_code, error_of(answer)) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize("address", ["http://localhost/callback", "http://localhost/", "http://LOCALHOST/x"])
def test_localhost_without_a_port_is_rejected(library: Library, address: str) -> None:
    """Rule 3: "A redirect address of the form `http://localhost/...` without a port is rejected."."""
    answer = register(library, redirect_uris=[address])
    assert (answer.status_code, error_of(answer)) == (400, "invalid_redirect_uri")


def test_localhost_with_a_port_is_rejected_too(library: Library) -> None:
    """Assumption: "loopback IP literals" are literals; `localhost` is a name, with a port too."""
    assert register(library, redirect_uris=["http://localhost:8080/callback"]).status_code == 400


def test_a_token_is_valid_for_the_target_that_was_given(library: Library) -> None:
    """Rule 4: "every token is valid for exactly one target resource, {base_url}/api/v3, given in the parameter `resource`"."""
    app = program(library)
    assert app.call(app.sign_in()["access_token"]).status_code == 200


@pytest.mark.parametrize("resource", [
    "{base_url}/api/v3/", "{base_url}/api/v2", "{base_url}", "{base_url}/mcp", "https://elsewhere.example/api/v3", "x",
])  # fmt: skip
def test_another_target_is_refused(library: Library, resource: str) -> None:
    """Rule 4: "exactly one target resource, {base_url}/api/v3"; another one is `invalid_target`."""
    wanted = resource.replace("{base_url}", library.base_url)
    assert answer_in(program(library).page(resource=wanted))["error"] == "invalid_target"


def test_two_targets_are_refused(library: Library) -> None:
    """Rule 4: "exactly one target resource"."""
    target = f"{library.base_url}/api/v3"
    assert answer_in(program(library).page(resource=[target, target]))["error"] == "invalid_target"


def test_the_target_at_code_redemption_has_to_match(library: Library) -> None:
    """Rule 4: "and optionally at code redemption, where it must match"."""
    app = program(library)
    answer = app.redeem(app.code(), resource=f"{library.base_url}/mcp")
    assert (answer.status_code, error_of(answer)) == (400, "invalid_target")
    assert app.redeem(app.code(), resource=f"{library.base_url}/api/v3").status_code == 200
    assert app.redeem(app.code()).status_code == 200


@pytest.mark.parametrize("scope", [EVERYTHING, "library:read tasks:read", "users:read"])
def test_a_missing_target_is_invalid_target(library: Library, scope: str) -> None:
    """Rule 5.

    "Missing `resource` at authorization for a self-registered client: the authorization server answers
    `error=invalid_target`."; it is what was registered that counts, not what is asked for.
    """
    app = program(library, scope=scope)
    assert answer_in(app.page(resource=None))["error"] == "invalid_target"
    assert answer_in(app.page(resource=None, scope=scope.split(" ", maxsplit=1)[0]))["error"] == "invalid_target"


@pytest.mark.parametrize("scope", [None, "library:read", "assets:read", "assets:read library:read"])
def test_a_reading_client_without_a_target_gets_a_token_for_the_mcp_server(library: Library, scope: str | None) -> None:
    """Rule 6.

    "When such a client omits `resource`, the token is bound to the MCP server. The v3 API refuses that token with
    401, and `WWW-Authenticate` carries `error="invalid_token"` and `error_description="audience mismatch"`."
    """
    app = program(library, scope=scope)
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
    """Rule 6 is for a client that "omits `resource`"; a refresh leaves the target as it is."""
    app = program(library, scope=None)
    tokens = app.sign_in()
    assert app.call(tokens["access_token"]).status_code == 200
    bound = app.sign_in(resource=None)
    renewed = app.refresh(bound["refresh_token"]).json()
    assert app.call(renewed["access_token"]).status_code == 401


def test_the_mcp_server_is_the_target_that_redemption_has_to_match(library: Library) -> None:
    """Rule 4, "where it must match", for a token that rule 6 bound."""
    app = program(library, scope=None)
    code = app.code(resource=None)
    assert error_of(app.redeem(code, resource=f"{library.base_url}/api/v3")) == "invalid_target"
    assert app.redeem(code, resource=f"{library.base_url}/mcp").status_code == 200


def test_a_registration_without_scope_is_stored_as_exactly_two(library: Library) -> None:
    """Rule 6: "a registration without `scope` is stored as exactly these two"."""
    assert register(library, scope=None).json()["scope"] == "library:read assets:read"


def test_an_issued_clients_surface_is_filled_in(library: Library) -> None:
    """Rule 7: "For a client issued by an administrator, the surface chosen at creation is filled in."."""
    api, mcp = issued_program(library), issued_program(library, surface="mcp_server")
    assert api.call(api.sign_in(resource=None)["access_token"]).status_code == 200
    refused = mcp.call(mcp.sign_in(resource=None)["access_token"])
    assert 'error_description="audience mismatch"' in refused.headers["WWW-Authenticate"]
    assert answer_in(mcp.page())["error"] == "invalid_target"
    assert mcp.page(resource=f"{library.base_url}/mcp").status_code == 200


SUBSETS = ["library:read", "library:read users:read", "assets:read tasks:read"]


@pytest.mark.parametrize(("requested", "registered", "released"), list(itertools.product(SUBSETS, repeat=3)))
def test_a_token_carries_the_intersection(library: Library, requested: str, registered: str, released: str) -> None:
    """Rule 8.

    "A token carries the intersection of the requested scopes, the scopes the client registered for, and the scopes
    the signing-in person released on the consent screen."
    """
    app = program(library, scope=registered)
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


def test_a_public_client_has_no_secret_and_does_not_authenticate(library: Library) -> None:
    """Rule: "public: does not authenticate at the token endpoint; no secret", "`none` (public client, no secret)"."""
    app = program(library, "none")
    assert app.secret is None
    tokens = app.sign_in()
    assert app.refresh(tokens["refresh_token"]).status_code == 200
    assert app.redeem(app.code(), client_secret="any").status_code == 401


@pytest.mark.parametrize("method", CONFIDENTIAL)
def test_a_confidential_client_authenticates_with_its_secret(library: Library, method: str) -> None:
    """Rule: "confidential: authenticates with a client secret"."""
    app = program(library, method)
    assert app.sign_in()
    app.secret = "wrong"
    answer = app.redeem(app.code())
    assert (answer.status_code, error_of(answer)) == (401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.parametrize(("registered", "used"), [
    (one, other) for one in EVERY_METHOD for other in EVERY_METHOD if one != other
])  # fmt: skip
def test_a_client_authenticates_exactly_as_it_is_registered(library: Library, registered: str, used: str) -> None:
    """Rule: "`token_endpoint_auth_method` values: `none` ..., `client_secret_basic` ..., `client_secret_post`"."""
    app = program(library, registered)
    code = app.code()
    app.method, app.secret = used, None if used == "none" else app.secret or "guess"
    answer = app.redeem(code)
    assert (answer.status_code, error_of(answer)) == (401, "invalid_client")
    assert "WWW-Authenticate" in answer.headers


def test_basic_is_the_default_method(library: Library) -> None:
    """Rule: "`client_secret_basic` (default when the field is omitted; confidential)"."""
    answer = register(library).json()
    assert answer["token_endpoint_auth_method"] == "client_secret_basic"
    assert answer["client_secret"]


def test_a_secret_is_shown_once(library: Library) -> None:
    """Rule: "`client_secret` appears in the registration response only and is never issued again."; it is stored hashed."""
    app = program(library)
    told = [app.page().text, app.ask({"grant_type": "x"}).text, library.control("GET", "oauth/clients").text]
    assert not any(app.secret in each for each in told if app.secret)
    with library.tenant.clients._database.read() as connection:
        dump = "\n".join(map(str, connection.execute("SELECT * FROM client_secrets").fetchall()))
    assert app.secret
    assert app.secret not in dump


def test_registrations_are_bounded_per_day(library: Library) -> None:
    """Rule: "A bounded number of registrations per day is accepted per tenant; store the `client_id` and reuse it."."""
    library.change(oauth={"registrations_per_day": 3})
    first = program(library)
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
    """Rule.

    "owned by the account, not by a person. Each connection belongs to the person who signed in and runs with that
    person's roles."
    """
    app = issued_program(library)
    add_person(library, "reader@library.example", "librarian")
    mine = app.sign_in()
    app.browser = library.client()
    theirs = app.redeem(
        answer_in(app.consent(form={"email": "reader@library.example", "password": "reader-password"}))["code"]
    ).json()
    grants = library.control("GET", "oauth/grants").json()
    assert {grant["person"] for grant in grants} == {library.tenant.account.email, "reader@library.example"}
    callers = [caller_of(library, each["access_token"]) for each in (mine, theirs)]
    assert [caller.person.email for caller in callers] == [library.tenant.account.email, "reader@library.example"]
    assert [caller.roles for caller in callers] == [("admin", "librarian"), ("librarian",)]


def test_roles_are_those_of_the_person_today(library: Library) -> None:
    """Rule: "runs with that person's roles": a role that was taken away is gone for tokens that exist, too."""
    add_person(library, "reader@library.example", "librarian")
    app = issued_program(library)
    tokens = app.redeem(
        answer_in(app.consent(form={"email": "reader@library.example", "password": "reader-password"}))["code"]
    ).json()
    assert "users:read" in tokens["scope"]
    assert app.call(tokens["access_token"], "/users").status_code == 200
    execute(library, "UPDATE users SET roles = '[]' WHERE email = 'reader@library.example'")
    assert caller_of(library, tokens["access_token"]).roles == ()
    refused = app.call(tokens["access_token"], "/users")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] != "InsufficientScope"


@pytest.mark.parametrize("method", CONFIDENTIAL)
def test_an_issued_client_is_confidential(library: Library, method: str) -> None:
    """Rule: "Always confidential (`client_secret_basic` or `client_secret_post`)."."""
    app = issued_program(library, token_endpoint_auth_method=method)
    assert (app.method, bool(app.secret)) == (method, True)
    assert app.sign_in()
    with pytest.raises(httpx.HTTPStatusError, match="422"):
        issued_program(library, token_endpoint_auth_method="none")


def test_basic_credentials_go_in_the_header_and_the_code_in_the_body(library: Library) -> None:
    """Rule.

    "With `client_secret_basic`, client id and secret go as HTTP Basic credentials to POST /oauth/token; `code` and
    `code_verifier` are in the body."
    """
    app = issued_program(library)
    body = {
        "grant_type": "authorization_code",
        "code": app.code(),
        "redirect_uri": CALLBACK,
        "code_verifier": app.verifier,
    }
    assert "client_id" not in body
    answer = library.client().post("/oauth/token", data=body, auth=(app.id, app.secret or ""))
    assert answer.status_code == 200


def test_two_secrets_are_good_at_most_and_rotation_does_not_interrupt(library: Library) -> None:
    """Rule.

    "The secret is shown once; at most two secrets are valid at a time so rotation does not interrupt.
    Administrators can rotate with a changeover window"
    """
    app = issued_program(library)
    old, refresh = app.secret, app.sign_in()["refresh_token"]
    rotated = library.control("POST", "oauth/clients/rotate", {"client_id": app.id, "changeover_seconds": 600}).json()
    assert rotated["client_secret"] not in {None, old}
    assert len(rotated["secrets"]) == 2
    library.clock.time += 599
    refresh = app.refresh(refresh).json()["refresh_token"]
    app.secret = rotated["client_secret"]
    refresh = app.refresh(refresh).json()["refresh_token"]
    with pytest.raises(httpx.HTTPStatusError, match="409"):
        library.control("POST", "oauth/clients/rotate", {"client_id": app.id})
    library.clock.time += 1
    app.secret = old
    assert app.refresh(refresh).status_code == 401
    app.secret = rotated["client_secret"]
    assert app.refresh(refresh).status_code == 200


def test_a_rotation_without_a_window_ends_every_older_secret(library: Library) -> None:
    """Assumption: the way out when two secrets are good and one of them is known to others."""
    app = issued_program(library)
    library.control("POST", "oauth/clients/rotate", {"client_id": app.id})
    rotated = library.control("POST", "oauth/clients/rotate", {"client_id": app.id, "changeover_seconds": 0}).json()
    assert len(rotated["secrets"]) == 1
    assert app.ask({"grant_type": "refresh_token", "refresh_token": "x"}).status_code == 401
    app.secret = rotated["client_secret"]
    assert app.sign_in()


def test_revocation_ends_all_connections_at_once(library: Library) -> None:
    """Rule: "and revoke to end all connections at once"."""
    app = issued_program(library)
    one, two = app.sign_in(), app.sign_in()
    code = app.code()
    library.control("POST", "oauth/clients/revoke", {"client_id": app.id})
    assert [app.call(each["access_token"]).status_code for each in (one, two)] == [401, 401]
    assert app.refresh(one["refresh_token"]).status_code == 401
    assert app.redeem(code).status_code == 401
    assert app.page().status_code == 400


def test_pkce_is_selectable_at_creation_and_on_by_default(library: Library) -> None:
    """Rule.

    "PKCE is selectable at creation and on by default; switch off only for connectors that send no
    `code_challenge`."
    """
    without = {"code_challenge": None, "code_challenge_method": None}
    assert answer_in(issued_program(library).page(**without))["error"] == "invalid_request"
    lax = issued_program(library, pkce=False)
    assert lax.redeem(lax.code(**without), code_verifier=None).status_code == 200
    assert lax.redeem(lax.code(), code_verifier=None).status_code == 400  # a challenge that was sent counts


def test_support_can_lift_pkce_for_confidential_clients_only(library: Library) -> None:
    """Rule.

    "For self-registered confidential clients, support can lift the PKCE requirement for the account. For public
    clients PKCE is always required."
    """
    library.change(oauth={"pkce_of_confidential": "lifted"})
    without = {"code_challenge": None, "code_challenge_method": None}
    for method in CONFIDENTIAL:
        app = program(library, method)
        assert app.redeem(app.code(**without), code_verifier=None).status_code == 200
    assert answer_in(program(library, "none").page(**without))["error"] == "invalid_request"


def test_a_verifier_without_a_challenge_is_refused(library: Library) -> None:
    """Rule 1: "OAuth 2.1", whose section 7.5.2 wants this: a challenge may have been taken away on the way."""
    app = issued_program(library, pkce=False)
    answer = app.redeem(app.code(code_challenge=None, code_challenge_method=None))
    assert error_of(answer) == "invalid_grant"


def test_issued_clients_are_a_matter_of_the_plan_and_registration_is_not(library: Library) -> None:
    """Rule: "This path is open only on plans that include advanced AI controls; self-registration is unaffected."."""
    library.change(oauth={"issued_clients": "closed"})
    with pytest.raises(httpx.HTTPStatusError, match="403"):
        issued_program(library)
    assert program(library).sign_in()


# --- v3 scopes


def test_old_tokens_received_the_asset_scopes(library: Library) -> None:
    """Rule.

    "Tokens issued before `assets:read` and `assets:write` existed received them automatically where they carried
    `library:read` or `library:write`."
    """
    for scopes, expected in (
        (["library:read"], {"library:read", "assets:read"}),
        (["library:write"], {"library:write", "assets:write"}),
        (["users:read"], {"users:read"}),
    ):
        token = library.token(scopes=scopes, before_assets=True)
        assert caller_of(library, token).scopes == expected
        assert caller_of(library, library.token(scopes=scopes)).scopes == set(scopes)


def test_a_missing_scope_is_named(library: Library) -> None:
    """Rule.

    "When a token lacks a needed scope, the response is `403` with code `InsufficientScope`, and `WWW-Authenticate`
    names the missing scope."
    """
    app = program(library, scope="users:read")
    answer = app.call(app.sign_in()["access_token"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "InsufficientScope")
    assert 'scope="library:read"' in answer.headers["WWW-Authenticate"]


# --- helpers


def caller_of(library: Library, token: str) -> Caller:
    """Who the service takes the bearer of a token for."""
    return check_bearer(library.tenant, f"Bearer {token}")


def add_person(library: Library, email: str, *roles: str) -> None:
    """Somebody else with an account."""
    execute(
        library,
        "INSERT INTO users (tenant, id, email, name, roles, password) VALUES (1, 900, ?, 'A Reader', ?, 'reader-password')",
        email,
        json.dumps(roles),
    )


def execute(library: Library, statement: str, *values: str) -> None:
    """A change behind the service's back."""
    with library.tenant.grants._database.write() as connection:
        connection.execute(statement, values)
