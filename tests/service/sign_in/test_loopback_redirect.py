"""The listener for the browser's response, and the line that a person pastes instead (RFC 8252, 7.3)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from pipelines.service.sign_in.loopback_redirect import (
    HEADERS,
    AuthorizationResponse,
    RedirectListener,
    free_addresses,
    is_free,
    next_response,
)
from tests.service.sign_in.home import SECONDS


@pytest.fixture
def address() -> str:
    """A redirect address whose port is free."""
    return free_addresses(1)[0]


@pytest.fixture
def browsers() -> Iterator[ThreadPoolExecutor]:
    """Threads that request a page as a browser does."""
    with ThreadPoolExecutor() as threads:
        yield threads


def received(listener: RedirectListener | None, pasted: int | None = None) -> AuthorizationResponse:
    """Returns the next response."""
    response = next_response(listener, pasted, SECONDS)
    assert response is not None
    return response


def test_a_browser_gets_the_result_before_the_sign_in_goes_on(address: str, browsers: ThreadPoolExecutor) -> None:
    """The command ends soon after `show`: by then the browser has its page, which is kept nowhere and names nobody."""
    with RedirectListener(address) as listener:
        visit = browsers.submit(httpx.get, f"{address}?code=a%2Fb&state=s", timeout=SECONDS)
        response = received(listener)
        assert (response.parameters, response.code_alone) == ({"code": "a/b", "state": "s"}, False)
        response.show("Signed in", "You & <nobody> else", 202)
        assert response.delivered is not None
        assert response.delivered.is_set()
        page = visit.result(SECONDS)
    assert (page.status_code, "<h1>Signed in</h1><p>You &amp; &lt;nobody&gt; else</p>" in page.text) == (202, True)
    assert {name: page.headers.get(name) for name in HEADERS} == HEADERS


def test_a_browser_that_still_waits_at_the_end_gets_a_page(address: str, browsers: ThreadPoolExecutor) -> None:
    """Two windows: the second one came after the response that counted."""
    with RedirectListener(address) as listener:
        first = browsers.submit(httpx.get, f"{address}?code=a", timeout=SECONDS)
        response = received(listener)
        second = browsers.submit(httpx.get, f"{address}?code=b", timeout=SECONDS)
        late = received(listener)
        response.show("Signed in", "Done")
        assert (first.result(SECONDS).status_code, late.parameters) == (200, {"code": "b"})
        third = browsers.submit(httpx.get, f"{address}?code=c", timeout=SECONDS)
        assert httpx.get(f"{address}/elsewhere", timeout=SECONDS).status_code == 404
        late.show("Ignored", "Too late", 400)
        assert second.result(SECONDS).status_code == 400
        received(listener).show("Ignored", "Too late", 400)
        assert third.result(SECONDS).status_code == 400


def test_a_closed_listener_leaves_neither_port_nor_pipe(address: str) -> None:
    """A sign-in tries the ports of its registration, and the program goes on afterwards."""
    listener = RedirectListener(address)
    descriptor = listener.fileno()
    assert not is_free(address)
    listener.close()
    assert is_free(address)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


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
    response = received(None, reading)
    response.show("Signed in", "Nobody waits for a page")
    os.close(writing)
    assert (response.parameters, response.code_alone) == (parameters, code_alone)
    with pytest.raises(EOFError):
        next_response(None, reading, SECONDS)
    os.close(reading)


def test_a_blank_line_is_no_response() -> None:
    """Somebody pressed the return key; the time ends."""
    reading, writing = os.pipe()
    os.write(writing, b" \n")
    assert next_response(None, reading, 0.0) is None
    os.close(reading)
    os.close(writing)
