"""The consent page: who may decide, what a decision does, and that its text cannot be forged."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.spec.conftest import Library
from tests.spec.oauth_client import CALLBACK, OAuthClient, answer_in, registered_client

WITHOUT_PASSWORD = {"email": "", "password": ""}


@pytest.fixture
def app(library: Library) -> OAuthClient:
    return registered_client(library, "none", scope="library:read users:read")


@pytest.mark.long
def test_the_person_signs_in_and_releases(app: OAuthClient) -> None:
    """service.md#scopes: a token has only the scopes that the person released."""
    page = app.page()
    assert page.status_code == 200
    assert re.findall(r'value="([a-z:]+)" checked', page.text) == ["library:read", "users:read"]
    answer = app.post(page, scope=["users:read", "tasks:read"])
    assert app.redeem(answer_in(answer)["code"]).json()["scope"] == "users:read"


def test_the_person_refuses(library: Library, app: OAuthClient) -> None:
    """RFC 6749, section 4.1.2.1. A refusal needs no sign-in and grants nothing."""
    answer = answer_in(app.post(app.page(), decision="refuse", **WITHOUT_PASSWORD))
    assert (answer["error"], answer["state"]) == ("access_denied", "a state & more")
    assert library.control("GET", "oauth/grants").json() == []


@pytest.mark.parametrize("form", [
    {"password": "wrong"}, {"email": "nobody@library.example"}, WITHOUT_PASSWORD, {"email": "'\" or 1=1 --"},
])  # fmt: skip
def test_a_wrong_password_is_asked_for_again(library: Library, app: OAuthClient, form: dict[str, str]) -> None:
    """The page keeps the address and the ticks, but not the password."""
    answer = app.post(app.page(), scope=["users:read"], **form)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert re.findall(r'value="([a-z:]+)" checked', answer.text) == ["users:read"]
    assert library.tenant.account.password not in answer.text
    assert "_library_session" not in answer.headers.get("Set-Cookie", "")
    assert answer_in(app.post(answer, scope=["users:read"]))["code"]


@pytest.mark.parametrize("token", ["", "0" * 64, "ü"])
def test_a_form_counts_only_with_the_token_of_its_page(library: Library, app: OAuthClient, token: str) -> None:
    """Another site can make a signed-in browser post, but does not know the token."""
    app.consent()
    before = library.control("GET", "oauth/grants").json()
    for decision in ("allow", "refuse", "sign_out"):
        answer = app.post(app.page(), form_token=token, decision=decision)
        assert answer.status_code == 403
        assert "Location" not in answer.headers
    assert library.control("GET", "oauth/grants").json() == before
    assert "Signed in as" in app.page().text


def test_cookies_are_for_this_tenant_and_for_no_script(app: OAuthClient) -> None:
    page = app.page()
    answers = [page, app.post(page)]
    for answer, name in zip(answers, ("_library_visit", "_library_session"), strict=True):
        (cookie,) = answer.headers.get_list("Set-Cookie")
        assert cookie.startswith(f"{name}=")
        assert {"HttpOnly", "Path=/library/", "SameSite=Lax"} <= set(cookie.split("; "))


@pytest.mark.parametrize("changes", [{"client_id": "unknown"}, {"client_id": None}, {"client_id": "x" * 5000}])
def test_an_unknown_program_gets_a_page_and_nobody_is_sent_anywhere(app: OAuthClient, changes: dict[str, Any]) -> None:
    """RFC 6749, section 4.1.2.1: no redirect for an unknown client."""
    refused(app.page(**changes))


@pytest.mark.parametrize("redirect_uri", [None, "https://evil.example/", "javascript:alert(1)", [CALLBACK, CALLBACK]])
def test_an_unknown_address_gets_a_page_and_nobody_is_sent_there(app: OAuthClient, redirect_uri: Any) -> None:
    """RFC 6749, section 4.1.2.1: no redirect to an unknown address. Assumption: `redirect_uri` is required."""
    refused(app.page(redirect_uri=redirect_uri))


def refused(answer: httpx.Response) -> None:
    assert answer.status_code == 400
    assert "Location" not in answer.headers
    assert "cannot be answered" in answer.text
    assert "<form" not in answer.text


@pytest.mark.parametrize(("changes", "error"), [
    ({"response_type": None}, "invalid_request"),
    ({"response_type": ["code", "code"]}, "invalid_request"),
    ({"state": ["a", "b"]}, "invalid_request"),
    ({"scope": ["library:read", "users:read"]}, "invalid_request"),
    ({"scope": "library:read  users:read"}, "invalid_scope"),
    ({"scope": "unknown"}, "invalid_scope"),
    ({"scope": "library:write"}, "invalid_scope"),
    ({"resource": "{base_url}/api/v3#x"}, "invalid_target"),
])  # fmt: skip
def test_other_refusals_go_to_the_program(app: OAuthClient, changes: dict[str, Any], error: str) -> None:
    """RFC 6749, section 4.1.2.1."""
    answer = app.page(**changes)
    assert answer.headers["Location"].startswith(CALLBACK + "?error=")
    assert answer_in(answer)["error"] == error
    assert answer_in(answer)["error_description"]


def test_a_request_without_scope_asks_for_everything_registered(app: OAuthClient) -> None:
    """Assumption: the default is every registered scope (RFC 6749, section 3.3)."""
    assert app.sign_in(scope=None)["scope"] == "library:read users:read"


def test_scopes_that_are_not_registered_are_left_out(app: OAuthClient) -> None:
    """service.md#scopes: a token has the intersection; an unknown or unregistered scope is no error if another one remains."""
    assert app.sign_in(scope="tasks:read users:read new:scope")["scope"] == "users:read"


def test_markup_in_a_name_is_text(library: Library) -> None:
    app = registered_client(library, client_name='"><script>alert(1)</script>&amp;')
    page = app.page()
    assert "<script" not in page.text
    assert "&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;" in page.text
    again = app.post(page, email='"><img src=x>', password="x").text
    assert "<img" not in again
