"""Redirect addresses: which may be registered, and which may be requested."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.oauth.redirect_uris import redirect_uri_problem, with_parameters
from tests.spec.conftest import Library
from tests.spec.oauth_client import CALLBACK, registered_client


@given(st.text())
def test_every_text_has_an_answer(text: str) -> None:
    """An accepted address begins with https or with http on a loopback literal."""
    if redirect_uri_problem(text) is None:
        assert text.lower().startswith(("https://", "http://127.", "http://[::1]:"))


@pytest.mark.parametrize("address", [
    "", "/callback", "//example.org/", "https:", "https://", "https:///path", "https://user@example.org/",
    "https://user:secret@example.org/", "https://example.org:0/", "https://example.org:99999/", "https://exa mple.org/",
    "https://example.org/\\..", "https://example.org/%zz", "https://example.org/\n", "https://[::1/", "javascript:alert(1)",
    "data:text/html,x", "com.example.app:/callback", "ftp://example.org/", "http://[::ffff:127.0.0.1]:8080/",
    "http://127.0.0.1.example.org:8080/", "http://user@127.0.0.1:8080/", "http://0177.0.0.1:8080/", "http://2130706433:8080/",
    "http://[::1%25lo]:8080/", "http://127.0.0.1:8080@example.org/", "https://example.org/é",
])  # fmt: skip
def test_an_invalid_redirect_address(address: str) -> None:
    assert redirect_uri_problem(address) is not None


@pytest.mark.parametrize("asked", [
    "http://127.0.0.1:8124/callback", "http://127.0.0.2:8123/callback", "http://127.0.0.1:8123/callback/",
    "http://127.0.0.1:8123/Callback", "http://127.0.0.1:8123/callback?x=1", "http://127.0.0.1:8123/other/../callback",
    "HTTP://127.0.0.1:8123/callback", "https://127.0.0.1:8123/callback",
])  # fmt: skip
def test_an_address_is_compared_character_by_character(library: Library, asked: str) -> None:
    """OAuth 2.1, section 4.1.1: simple string comparison. There is no redirect to another address."""
    answer = registered_client(library).page(redirect_uri=asked)
    assert answer.status_code == 400
    assert "Location" not in answer.headers
    assert answer.headers["Content-Type"].startswith("text/html")


def test_the_port_of_a_loopback_address_may_be_left_open(library: Library) -> None:
    """RFC 8252, section 7.3, as a setting. Host and path still count, and https addresses are compared as they are."""
    library.change(oauth={"loopback_port": "any"})
    app = registered_client(library, redirect_uris=[CALLBACK, "https://example.org:8443/callback"])
    app.redirect_uri = "http://127.0.0.1:55555/callback"
    assert app.sign_in()
    for other in ("http://127.0.0.2:55555/callback", "http://127.0.0.1:55555/other", "http://127.0.0.1/callback"):
        assert app.page(redirect_uri=other).status_code == 400
    assert app.page(redirect_uri="https://example.org:8444/callback").status_code == 400


@pytest.mark.long
@given(st.dictionaries(st.sampled_from(["code", "state", "error"]), st.text(st.characters(codec="utf-8"))))
def test_an_answer_never_leaves_the_query(answer: dict[str, str]) -> None:
    address = with_parameters("https://example.org/callback", answer.items())
    assert redirect_uri_problem(address) is None
    assert address.startswith("https://example.org/callback")
