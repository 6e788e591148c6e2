"""The token endpoint: codes, client authentication, and the end of tokens."""

from __future__ import annotations

import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote_plus

import pytest

from sandbox.state.clients import Clients
from sandbox.state.grants import Grants
from tests.spec.conftest import Library
from tests.spec.oauth_client import OAuthClient, registered_client


@pytest.fixture
def app(library: Library) -> OAuthClient:
    return registered_client(library)


def refused(answer: Any, error: str, status: int = 400) -> None:
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert sorted(answer.json()) == ["error", "error_description"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_code_works_once_and_a_second_time_ends_what_it_gave(app: OAuthClient) -> None:
    """OAuth 2.1, section 4.1.3: a code that is used twice revokes its tokens."""
    code = app.code()
    tokens = app.redeem(code).json()
    renewed = app.refresh(tokens["refresh_token"]).json()
    assert app.call(renewed["access_token"]).status_code == 200
    refused(app.redeem(code), "invalid_grant")
    for each in (tokens, renewed):
        answer = app.call(each["access_token"])
        assert 'error_description="token revoked"' in answer.headers["WWW-Authenticate"]
    refused(app.refresh(renewed["refresh_token"]), "invalid_grant")
    refused(app.redeem(code), "invalid_grant")


def test_a_code_that_comes_twice_at_once_gives_one_answer(app: OAuthClient) -> None:
    code, gate = app.code(), threading.Barrier(6)

    def redeem(_: int) -> int:
        gate.wait()
        return app.redeem(code).status_code

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(redeem, range(6))) == [200] + [400] * 5


def test_a_code_has_a_short_life(library: Library, app: OAuthClient) -> None:
    """Assumption: a code is valid for a minute. Setting: `code_seconds`."""
    code = app.code()
    library.clock.time += 60
    refused(app.redeem(code), "invalid_grant")
    library.change(oauth={"code_seconds": 600})
    code = app.code()
    library.clock.time += 599
    assert app.redeem(code).status_code == 200


def test_a_code_belongs_to_its_client(library: Library, app: OAuthClient) -> None:
    """An attempt of another client leaves the code valid."""
    code = app.code()
    other = registered_client(library)
    other.verifier = app.verifier
    refused(other.redeem(code), "invalid_grant")
    assert app.redeem(code).status_code == 200


def test_every_failed_authentication_gets_the_same_refusal(library: Library, app: OAuthClient) -> None:
    """Every refusal is the same, so nobody learns which clients exist."""
    client, form = library.client(), {"grant_type": "refresh_token", "refresh_token": "x"}
    answers = [
        client.post("/oauth/token", data=form),
        client.post("/oauth/token", data={**form, "client_id": "unknown"}),
        client.post("/oauth/token", data={**form, "client_id": app.id}),
        client.post("/oauth/token", data=form, auth=("unknown", "x")),
        client.post("/oauth/token", data=form, auth=(app.id, "wrong")),
        client.post("/oauth/token", data=form, auth=(app.id, "")),
        client.post("/oauth/token", data=form, headers={"Authorization": "Basic !!!"}),
        client.post("/oauth/token", data=form, headers={"Authorization": f"Bearer {app.secret}"}),
        client.post("/oauth/token", data=form, headers={"Authorization": ""}),
    ]
    for answer in answers:
        refused(answer, "invalid_client", 401)
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="library", charset="UTF-8"'
    assert len({answer.text for answer in answers}) == 1


def test_a_client_authenticates_in_one_way_only(app: OAuthClient) -> None:
    """RFC 6749, section 2.3."""
    refused(app.redeem("x", client_secret=app.secret), "invalid_request")


def test_a_client_id_in_the_body_is_the_one_that_authenticates(library: Library, app: OAuthClient) -> None:
    code = app.code()
    refused(app.redeem(code, client_id=registered_client(library).id), "invalid_request")
    assert app.redeem(code, client_id=app.id).status_code == 200


def test_basic_credentials_may_be_encoded_as_the_rfc_wants(library: Library, app: OAuthClient) -> None:
    """RFC 6749, section 2.3.1: id and secret may be form-encoded."""
    assert app.secret
    encoded = "".join(f"%{ord(each):02X}" for each in app.id) + ":" + quote_plus(app.secret)
    headers = {"Authorization": "basic " + b64encode(encoded.encode()).decode()}
    form = {"grant_type": "refresh_token", "refresh_token": app.sign_in()["refresh_token"]}
    assert library.client().post("/oauth/token", data=form, headers=headers).status_code == 200


def test_a_parameter_comes_once(library: Library, app: OAuthClient) -> None:
    """RFC 6749, section 3.2: a repeated parameter is refused, also an unknown one."""
    code = app.code()
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": app.redirect_uri}
    form |= {"code_verifier": app.verifier, "anything": "x"}
    for name in form:
        sent = {key: [value, value] if key == name else value for key, value in form.items()}
        refused(app.ask(sent), "invalid_request")
    assert app.redeem(code, anything="x").status_code == 200


def test_the_body_is_a_form(library: Library, app: OAuthClient) -> None:
    """RFC 6749, section 3.2: the body is a form; parameters in the address do not count."""
    form = {"grant_type": "authorization_code", "code": app.code(), "redirect_uri": app.redirect_uri}
    form |= {"code_verifier": app.verifier}
    client = library.client(auth=(app.id, app.secret or ""))
    refused(client.post("/oauth/token", json=form), "invalid_request")
    refused(client.post("/oauth/token", params=form), "invalid_request")
    refused(client.post("/oauth/token", data=form, files={"a": b"b"}), "invalid_request")
    assert client.post("/oauth/token", data=form).status_code == 200


def test_unknown_parameters_are_ignored(app: OAuthClient) -> None:
    assert app.redeem(app.code(), audience="x", empty="").status_code == 200


def test_a_connection_can_be_ended(library: Library, app: OAuthClient) -> None:
    """By client, by person, or all; unused codes end, too."""
    other = registered_client(library)
    tokens, other_tokens, code = app.sign_in(), other.sign_in(), app.code()
    assert library.control("POST", "oauth/grants/end", {"client_id": app.id}).json() == {"ended": 2}
    assert [
        each.status_code for each in (app.call(tokens["access_token"]), app.call(other_tokens["access_token"]))
    ] == [
        401,
        200,
    ]
    refused(app.refresh(tokens["refresh_token"]), "invalid_grant")
    refused(app.redeem(code), "invalid_grant")
    assert library.control("POST", "oauth/grants/end", {"person": "nobody"}).json() == {"ended": 0}
    assert library.control("POST", "oauth/grants/end", {"person": "Backup@Library.example"}).json() == {"ended": 1}
    assert library.control("GET", "oauth/grants").json() == []


def test_what_a_person_granted_ends_with_the_person(library: Library, app: OAuthClient) -> None:
    """service.md#clients: a connection belongs to the person who signed in."""
    tokens, code = app.sign_in(), app.code()
    with library.tenant.grants._database.write() as connection:
        connection.execute("DELETE FROM users")
    assert app.call(tokens["access_token"]).status_code == 401
    refused(app.refresh(tokens["refresh_token"]), "invalid_grant")
    refused(app.redeem(code), "invalid_grant")


def test_a_person_who_is_deleted_has_no_tokens_any_more(library: Library) -> None:
    """The same through the API: 401 at once."""
    body = {"email": "gone@library.example", "name": "Gone", "roles": ["librarian"]}
    person = library.v3().post("/users", json=body).json()
    headers = {"Authorization": f"Bearer {library.token(person=body['email'])}"}
    client = library.client("/api/v3", headers=headers)
    assert client.get("/users/me").json()["email"] == body["email"]
    assert library.v3().delete(f"/users/{person['id']}").is_success
    assert client.get("/users/me").status_code == 401


def test_tokens_and_codes_are_kept_as_digests(library: Library, app: OAuthClient) -> None:
    """The state file contains no secret that signs in."""
    code = app.code()
    tokens = app.sign_in()
    with library.tenant.grants._database.read() as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        dump = "\n".join(str(row) for name in tables for row in connection.execute(f"SELECT * FROM {name}"))
    for secret in (code, app.secret, tokens["access_token"], tokens["refresh_token"]):
        assert secret
        assert secret not in dump


def test_tokens_of_one_tenant_mean_nothing_to_another(library: Library, app: OAuthClient) -> None:
    """service.md#overview: each tenant has its own {base_url}."""
    database = library.tenant.grants._database
    tokens = app.sign_in()
    assert Grants(database, 99).access(tokens["access_token"]) is None
    assert Grants(database, 99).active() == []
    assert Clients(database, 99).find(app.id) is None


def test_every_refusal_of_a_bearer_says_why(library: Library, app: OAuthClient) -> None:
    """RFC 6750, section 3.1: no error without a token, `invalid_token` with one."""
    assert library.client("/api/v3").get("/publications").headers["WWW-Authenticate"] == 'Bearer realm="library"'
    unknown = app.call("unknown")
    assert 'error_description="unknown token"' in unknown.headers["WWW-Authenticate"]
    token = app.sign_in()["access_token"]
    library.clock.time += 3600
    assert 'error_description="token expired"' in app.call(token).headers["WWW-Authenticate"]
    assert unknown.json()["error"]["code"] == "Unauthorized"


def test_a_refresh_token_is_no_access_token(app: OAuthClient) -> None:
    assert app.call(app.sign_in()["refresh_token"]).status_code == 401
    assert app.call(app.code()).status_code == 401
