"""Redirect addresses: which may be registered, and which may be requested."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.oauth.redirect_uris import is_registered, redirect_uri_problem, with_parameters
from tests.spec.conftest import Library
from tests.spec.oauth_client import CALLBACK, answer_in, registered_client

PORTS = st.integers(1, 65535)
PATHS = st.from_regex(r"(/[A-Za-z0-9._~-]{0,8}){0,3}(\?[a-z]=[a-z0-9]{0,4})?", fullmatch=True)
V4 = st.integers(0, 2**32 - 1).map(IPv4Address)
LOOPBACK = st.integers(127 << 24, (128 << 24) - 1).map(IPv4Address).map(str) | st.just("[::1]")
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,9}(\.[a-z]{1,6}){0,2}", fullmatch=True) | st.just("localhost")


@given(LOOPBACK, PORTS, PATHS)
def test_http_is_good_on_every_loopback_literal_with_a_port(host: str, port: int, path: str) -> None:
    assert redirect_uri_problem(f"http://{host}:{port}{path}") is None


@given(LOOPBACK, PATHS, st.sampled_from(["", ":"]))
def test_http_is_bad_without_a_port(host: str, path: str, end: str) -> None:
    assert redirect_uri_problem(f"http://{host}{end}{path}") == "must name its port"


@given(V4.filter(lambda address: not address.is_loopback).map(str) | NAMES, PORTS, PATHS)
def test_http_is_bad_anywhere_else(host: str, port: int, path: str) -> None:
    assert redirect_uri_problem(f"http://{host}:{port}{path}") is not None
    assert redirect_uri_problem(f"http://{host}{path}") is not None


@given(NAMES | LOOPBACK | V4.map(str), st.none() | PORTS, PATHS)
def test_https_is_good_anywhere(host: str, port: int | None, path: str) -> None:
    address = f"https://{host}{'' if port is None else f':{port}'}{path}"
    assert redirect_uri_problem(address) is None
    assert redirect_uri_problem(address + "#part") == "must have no fragment"
    assert redirect_uri_problem(address + "#") == "must have no fragment"


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


@given(PORTS, PORTS, st.booleans())
def test_with_any_port_every_port_is_registered(one: int, other: int, any_port: bool) -> None:
    registered = [f"http://[::1]:{one}/callback"]
    found = is_registered(f"http://[::1]:{other}/callback", registered, any_loopback_port=any_port)
    assert found == (any_port or one == other)


def test_the_answer_joins_the_query_of_the_address(library: Library) -> None:
    """RFC 6749, section 4.1.2: the query of the address stays."""
    app = registered_client(library, redirect_uris=[CALLBACK + "?tenant=a%20b"])
    answer = app.consent()
    assert answer.headers["Location"].startswith(CALLBACK + "?tenant=a%20b&code=")
    assert answer_in(answer)["tenant"] == "a b"


@given(st.dictionaries(st.sampled_from(["code", "state", "error"]), st.text(st.characters(codec="utf-8"))))
def test_an_answer_never_leaves_the_query(answer: dict[str, str]) -> None:
    address = with_parameters("https://example.org/callback", answer.items())
    assert redirect_uri_problem(address) is None
    assert address.startswith("https://example.org/callback")
