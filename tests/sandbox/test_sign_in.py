"""service.md#v2: HTTP Basic and the session cookie."""

from __future__ import annotations

import base64

import pytest

from sandbox.state.database import Database
from tests.sandbox.conftest import FakeClock, Service, open_service

UNAUTHORIZED = {"error": {"code": "Unauthorized", "message": "Sign-in is missing or wrong"}}


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "authorization",
    [
        basic("backup@library.example:wrong"),
        basic("nobody@library.example:sandbox-password"),
        basic("backup@library.example"),
        basic(":"),
        "Basic !!!",
        "Basic",
        "Bearer abc",
        'Digest username="backup@library.example", password="sandbox-password"',
        "",
    ],
)
def test_wrong_credentials_are_refused(library: Service, authorization: str) -> None:
    """service.md#errors: not authorised is 401; the challenge is the one of HTTP Basic."""
    with library.client(auth=None, headers={"Authorization": authorization}) as client:
        answer = client.get("/publications/1")
    assert answer.status_code == 401
    assert answer.json() == UNAUTHORIZED
    assert answer.headers["WWW-Authenticate"].startswith('Basic realm="library"')


def test_a_wrong_cookie_is_refused_and_a_right_one_does_not_replace_wrong_credentials(library: Service) -> None:
    """Assumption: with an `Authorization` header the cookie does not count."""
    with library.client(auth=None, cookies={"_library_session": "guess"}) as client:
        assert client.get("/publications/1").status_code == 401
    with library.client(auth=("x", "y"), cookies={"_library_session": library.tenant.session_cookie}) as client:
        assert client.get("/publications/1").status_code == 401


def test_the_user_name_is_an_address_and_its_case_does_not_matter(library: Service) -> None:
    """Assumption: the case of the e-mail address does not matter, that of the password does."""
    with library.client(auth=("Backup@Library.example", "sandbox-password")) as client:
        assert client.get("/publications/1").status_code == 200
    with library.client(auth=("backup@library.example", "Sandbox-password")) as client:
        assert client.get("/publications/1").status_code == 401


def test_a_session_of_one_tenant_does_not_open_another() -> None:
    """service.md#overview: each tenant has its own {base_url}."""
    database, clock = Database(), FakeClock()
    one, two = (open_service(database, 0, clock, name) for name in ("one", "two"))
    assert one.tenant.session_cookie != two.tenant.session_cookie
    with two.client(auth=None, cookies={"_library_session": one.tenant.session_cookie}) as client:
        assert client.get("/publications").status_code == 401
    database.close()
