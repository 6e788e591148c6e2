"""The listener for the browser's response, and the line that a person pastes instead (RFC 8252, 7.3)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from pipelines.service.sign_in.loopback_redirect import (
    HEADERS,
    Arrivals,
    RedirectListener,
    is_free,
    read_pasted,
    redirect_addresses,
)
from tests.service.sign_in.home import SECONDS


@pytest.fixture
def address() -> str:
    """A redirect address whose port is free."""
    return next(filter(is_free, redirect_addresses()))


@pytest.fixture
def browsers() -> Iterator[ThreadPoolExecutor]:
    """Threads that request a page as a browser does."""
    with ThreadPoolExecutor() as threads:
        yield threads


def test_a_browser_has_its_page_before_the_sign_in_goes_on(address: str, browsers: ThreadPoolExecutor) -> None:
    """The command may end soon after the response: by then the browser has its page, which is kept nowhere and names nobody."""
    arrived = Arrivals()
    with RedirectListener(address, arrived):
        visit = browsers.submit(httpx.get, f"{address}?code=a%2Fb&state=s", timeout=SECONDS)
        assert arrived.get(timeout=SECONDS) == ({"code": "a/b", "state": "s"}, False)
    page = visit.result(SECONDS)
    assert (page.status_code, "You can close this window" in page.text) == (200, True)
    assert {name: page.headers.get(name) for name in HEADERS} == HEADERS


def test_a_closed_listener_leaves_the_port(address: str) -> None:
    """A sign-in tries the ports of its registration, and the program goes on afterwards."""
    listener = RedirectListener(address, Arrivals())
    assert not is_free(address)
    listener.close()
    assert is_free(address)


@pytest.mark.parametrize(
    ("line", "parameters", "code_alone"),
    [
        (b"http://127.0.0.1:1/callback?code=a&state=s\n", {"code": "a", "state": "s"}, False),
        (b"code=a&state=s\n", {"code": "a", "state": "s"}, False),
        (b"a-code\n", {"code": "a-code"}, True),
        (b"here it is: a-code\n", {"code": "a-code"}, True),
    ],
)
def test_a_pasted_line_is_a_response(line: bytes, parameters: dict[str, str], code_alone: bool) -> None:
    """Its last word counts; a person who pastes the code alone has no `state` to compare."""
    reading, writing = os.pipe()
    os.write(writing, line)
    os.close(writing)
    arrived = Arrivals()
    read_pasted(reading, arrived)
    os.close(reading)
    assert (arrived.get(timeout=0), arrived.get(timeout=0)) == ((parameters, code_alone), None)
