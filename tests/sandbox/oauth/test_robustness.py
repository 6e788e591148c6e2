"""Any input gets an OAuth response, never an internal error."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spec.conftest import Library
from tests.spec.oauth_client import CALLBACK, registered_client

NAMES = st.sampled_from([
    "response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource",
    "grant_type", "code", "refresh_token", "code_verifier", "client_secret", "decision", "email", "form_token", "x",
])  # fmt: skip
USUAL = [
    "code",
    "S256",
    CALLBACK,
    "authorization_code",
    "refresh_token",
    "library:read",
    "allow",
    "refuse",
    "sign_out",
    "",
]
VALUES = st.sampled_from(USUAL).map(str.encode) | st.binary(max_size=30)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=8)
HEADERS = st.sampled_from(
    ["", "Basic", "Basic Og==", "Basic /w==", "Basic YTo=", "Basic 8J+Ygg==", "Digest a=b", "Bearer x", "="]
)
each_of_many = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200
)  # one library for all of them


def encoded(fields: list[tuple[str, bytes]]) -> str:
    return "&".join(f"{name}={quote_from_bytes(value)}" for name, value in fields)


@each_of_many
@given(query=FIELDS, form=FIELDS, known=st.booleans())
def test_authorizations(library: Library, query: Any, form: Any, known: bool) -> None:
    if known:
        query = [("client_id", registered_client(library).id.encode()), ("redirect_uri", CALLBACK.encode()), *query]
    client = library.client(headers={"Content-Type": "application/x-www-form-urlencoded"})
    for answer in (
        client.get(f"/oauth/authorize?{encoded(query)}"),
        client.post(f"/oauth/authorize?{encoded(query)}", content=encoded(form)),
    ):
        assert answer.status_code in {200, 303, 400, 403, 422}
        if answer.status_code == 303:
            assert answer.headers["Location"].startswith(CALLBACK + "?")


@each_of_many
@given(form=FIELDS, authorization=HEADERS)
def test_token_requests(library: Library, form: Any, authorization: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": authorization}
    answer = library.client().post("/oauth/token", content=encoded(form), headers=headers)
    assert answer.status_code in {400, 401}
    assert answer.json()["error"]


@each_of_many
@given(body=st.binary(max_size=200))
def test_registrations(library: Library, body: bytes) -> None:
    assert library.client().post("/oauth/clients", content=body).status_code == 400


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/authorize"])
def test_a_form_that_is_too_large(library: Library, path: str) -> None:
    """It is not read and counts as an empty form."""
    app = registered_client(library)
    answer = app.browser.post(
        path, params=app.request(), data={"code": "x" * 2_000_000}, auth=(app.id, app.secret or "")
    )
    assert answer.status_code in {400, 403}


def test_a_name_that_no_file_can_hold(library: Library) -> None:
    """Half of a surrogate pair is refused; in ignored metadata it does not matter."""
    for path in ("/oauth/clients", "/../_control/oauth/clients"):
        body = b'{"client_name": "\\ud800", "redirect_uris": ["https://example.org/"]}'
        assert library.client().post(path, content=body).status_code in {400, 422}
    body = b'{"other": "\\ud800", "redirect_uris": ["https://example.org/"]}'
    assert library.client().post("/oauth/clients", content=body).status_code == 201
