"""Registration (RFC 7591): stored values and refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.oauth.errors import OAuthError
from sandbox.oauth.registration import new_client
from tests.spec.conftest import Library
from tests.spec.oauth_client import CALLBACK, register

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


def test_what_is_left_out_gets_a_default(library: Library) -> None:
    """RFC 7591, section 2; but every client may refresh, because every access token has a refresh token (service.md#tokens)."""
    answer = library.client().post("/oauth/clients", json={"redirect_uris": [CALLBACK]})
    assert answer.status_code == 201
    stored = answer.json()
    assert len(stored.pop("client_id")) == 32
    assert len(stored.pop("client_secret")) == 43
    assert stored == {
        "client_id_issued_at": 1_800_000_000,
        "client_secret_expires_at": 0,
        "client_name": "",
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_basic",
        "scope": "library:read assets:read",
    }


@pytest.mark.parametrize(("field", "value"), [
    ("client_name", 5), ("client_name", "x" * 201), ("client_name", ["x"]),
    ("grant_types", []), ("grant_types", ["refresh_token"]), ("grant_types", ["implicit"]), ("grant_types", "authorization_code"),
    ("grant_types", ["authorization_code", "password"]), ("grant_types", [["authorization_code"]]),
    ("response_types", []), ("response_types", ["token"]), ("response_types", ["code", "token"]), ("response_types", "code"),
    ("token_endpoint_auth_method", "private_key_jwt"), ("token_endpoint_auth_method", ""), ("token_endpoint_auth_method", ["none"]),
    ("scope", ""), ("scope", "library:all"), ("scope", ["library:read"]), ("scope", "library:read  assets:read"), ("scope", 1),
])  # fmt: skip
def test_metadata_that_cannot_be_kept(library: Library, field: str, value: Any) -> None:
    """RFC 7591, section 3.2.2."""
    answer = register(library, **{field: value})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    assert field in answer.json()["error_description"]


def test_unknown_metadata_are_ignored(library: Library) -> None:
    """RFC 7591, section 2: unknown metadata are ignored."""
    answer = register(library, logo_uri="https://example.org/logo.png", contacts=["a@example.org"], software_id=7)
    assert answer.status_code == 201
    assert "logo_uri" not in answer.json()


@pytest.mark.long
@given(
    st.dictionaries(st.sampled_from(["client_name", "redirect_uris", "grant_types", "scope", "response_types"]), JSON)
    | JSON
)
def test_every_body_is_stored_or_refused(body: Any) -> None:
    error = None
    try:
        assert new_client(body, 0.0).redirect_uris
    except OAuthError as refusal:
        error = refusal.error
    assert error in {None, "invalid_client_metadata", "invalid_redirect_uri"}


@pytest.mark.long
def test_the_bound_holds_under_threads(library: Library) -> None:
    """service.md#clients: the registrations of a tenant per day are limited."""
    library.change(oauth={"registrations_per_day": 5})
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: register(library).status_code, range(12)))
    assert sorted(statuses) == [201] * 5 + [429] * 7
