"""The consent page: who may decide, what a decision does, and that its text cannot be forged."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spec.conftest import Library
from tests.spec.oauth_client import CALLBACK, OAuthClient, answer_in, issued_client, registered_client

WITHOUT_PASSWORD = {"email": "", "password": ""}


@pytest.fixture
def app(library: Library) -> OAuthClient:
    return registered_client(library, "none", scope="library:read users:read")


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


def test_a_person_who_ticks_nothing_is_asked_again(app: OAuthClient) -> None:
    """Assumption: a token without a scope is never intended."""
    answer = app.post(app.page(), scope=[])
    assert answer.status_code == 422
    assert "Tick at least one" in answer.text
    assert "Signed in as" in answer.text


def test_a_decision_that_is_neither_releases_nothing_without_a_password(app: OAuthClient) -> None:
    assert app.post(app.page(), decision="", **WITHOUT_PASSWORD).status_code == 422


def test_the_browser_stays_signed_in(library: Library, app: OAuthClient) -> None:
    """The second consent needs no password, for another program too. The session expires."""
    app.consent()
    other = registered_client(library, "none")
    other.browser = app.browser
    page = other.page()
    assert "Signed in as <strong>Backup</strong>" in page.text
    assert 'name="password"' not in page.text
    assert answer_in(other.post(page, **WITHOUT_PASSWORD))["code"]
    library.clock.time += library.tenant.settings.oauth.session_seconds
    assert 'name="password"' in other.page().text


def test_a_signed_in_browser_is_signed_in_to_v2_as_well(library: Library, app: OAuthClient) -> None:
    """service.md#v2: the cookie `_library_session` of a signed-in browser."""
    app.consent()
    assert app.browser.get("/api/v2/publications/1").status_code == 200
    library.clock.time += library.tenant.settings.oauth.session_seconds
    assert app.browser.get("/api/v2/publications/1").status_code == 401


def test_the_session_from_the_start_counts_too(library: Library, app: OAuthClient) -> None:
    app.browser = library.client(cookies={"_library_session": library.tenant.session_cookie})
    assert answer_in(app.post(app.page(), **WITHOUT_PASSWORD))["code"]


def test_another_account_can_be_used(library: Library, app: OAuthClient) -> None:
    app.consent()
    session = app.browser.cookies["_library_session"]
    page = app.post(app.page(), decision="sign_out")
    assert 'name="password"' in page.text
    assert "_library_session" not in app.browser.cookies
    signed_out = library.client("/api/v2", cookies={"_library_session": session})
    assert signed_out.get("/publications/1").status_code == 401
    assert answer_in(app.post(page))["code"]


def test_signing_out_leaves_the_session_of_the_ready_line(library: Library, app: OAuthClient) -> None:
    app.browser = library.client(cookies={"_library_session": library.tenant.session_cookie})
    app.post(app.page(), decision="sign_out")
    client = library.client("/api/v2", cookies={"_library_session": library.tenant.session_cookie})
    assert client.get("/publications/1").status_code == 200


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


def test_a_token_of_another_browser_does_not_count(library: Library, app: OAuthClient) -> None:
    """The form token depends on a cookie, so it works in one browser only."""
    foreign = app.page()
    for cookies in ({}, {"_library_visit": "other"}):
        app.browser = library.client(cookies=cookies)
        assert app.post(foreign).status_code == 403


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


def test_a_post_is_examined_like_a_get(app: OAuthClient) -> None:
    """The parameters are in the address of the form, where they can be changed."""
    page = app.page()
    page.request.url = httpx.URL(str(page.url).replace("127.0.0.1%3A8123", "127.0.0.1%3A9"))
    assert app.post(page).status_code == 400


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    name=st.text(st.characters(codec="utf-8"), max_size=60), state=st.text(st.characters(codec="utf-8"), max_size=40)
)
def test_nothing_from_outside_becomes_a_part_of_the_page(library: Library, name: str, state: str) -> None:
    """The page has the same elements for any client name and state."""
    app = registered_client(library, "none", client_name=name)
    elements = re.compile(r"<[a-z/!][^>]*>")
    plain = elements.findall(registered_client(library, "none", client_name="Plain").page().text)
    found = elements.findall(app.page(state=state).text)
    assert len(found) == len(plain)


def test_markup_in_a_name_is_text(library: Library) -> None:
    app = registered_client(library, client_name='"><script>alert(1)</script>&amp;')
    page = app.page()
    assert "<script" not in page.text
    assert "&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;" in page.text
    again = app.post(page, email='"><img src=x>', password="x").text
    assert "<img" not in again


def test_the_page_needs_nothing_from_anywhere(app: OAuthClient) -> None:
    """The page has no address and no script; its policy forbids to load anything or to frame it."""
    page = app.page()
    assert not re.search(r"(src|href|action)=|url\(|@import|https?://", page.text)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"


def test_every_field_has_a_label(app: OAuthClient) -> None:
    text = app.page().text
    fields = [re.search(r'id="([\w-]+)"', each) for each in re.findall(r"<input[^>]*>", text) if "hidden" not in each]
    assert len(fields) == 4
    assert all(each and f'<label for="{each[1]}">' in text for each in fields)
    assert '<html lang="en">' in text
    assert all(name in text for name in ("<title>", "<main>", "<legend>", "<h1>"))


def test_the_page_says_whose_program_it_is(library: Library, app: OAuthClient) -> None:
    """The name of a self-registered client proves nothing; the page shows where the answer goes."""
    own = app.page().text
    assert "nobody has checked its name" in own
    assert "<strong>127.0.0.1:8123</strong>, a program on this computer" in own
    issued = issued_client(library, ["https://connector.example/back"]).page().text
    assert "An administrator of this library issued" in issued
    assert "<strong>connector.example</strong>." in issued


def test_a_program_without_a_name_is_called_by_its_id(library: Library) -> None:
    app = registered_client(library, client_name=None)
    assert app.id in app.page().text


def test_a_session_of_another_tenant_is_none(library: Library, app: OAuthClient) -> None:
    app.browser = library.client(cookies={"_library_session": "0" * 32})
    assert 'name="password"' in app.page().text
