"""The token endpoint: codes, client authentication, and the end of tokens."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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


def test_tokens_of_one_tenant_mean_nothing_to_another(library: Library, app: OAuthClient) -> None:
    """service.md#overview: each tenant has its own {base_url}."""
    database = library.tenant.grants._database
    tokens = app.sign_in()
    assert Grants(database, 99).access(tokens["access_token"]) is None
    assert Grants(database, 99).active() == []
    assert Clients(database, 99).find(app.id) is None
