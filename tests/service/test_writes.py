"""Writes (I8): which are repeated, which are unclear, which are refused, and what no message shows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    ForeignOriginError,
    ProtocolError,
    RefusedError,
    SignInError,
    TemporaryError,
    UnclearError,
)
from tests.service.conftest import ClientFor, Serve
from tests.service.scripted import Answer, Received, Script, in_turn

ERROR = {"error": {"code": "Unprocessable", "message": "categories: a string"}}
BODY = {"title": 'Über "Bücher"\r\n\x00', "abstract": "confidential-abstract 𝔄"}
CREATED = Answer({"id": 17}, status=201)


def test_a_write_sends_utf8_json_and_returns_the_json_of_the_response(serve: Serve, client_for: ClientFor) -> None:
    """Bodies are JSON (service.md#overview); any text arrives unchanged."""
    server = serve(in_turn(CREATED, Answer({"id": 17, "title": "x"}), Answer(b"", status=204)))
    client = client_for(server.url)
    assert client.write("POST", "publications", BODY) == {"id": 17}
    assert client.write("PATCH", "publications/17", {"title": "x"}) == {"id": 17, "title": "x"}
    assert client.write("DELETE", "publications/17") is None
    assert [(request.method, request.target) for request in server.received] == [
        ("POST", "/api/v2/publications"),
        ("PATCH", "/api/v2/publications/17"),
        ("DELETE", "/api/v2/publications/17"),
    ]
    assert json.loads(server.received[0].body) == BODY
    types = [request.headers.get("content-type") for request in server.received]
    assert types == ["application/json", "application/json", None]
    assert client.requests == 3


UNCLEAR: dict[str, tuple[Answer | Exception, str]] = {
    "500": (Answer(ERROR, status=500), r"500 Internal Server Error \(Unprocessable: categories: a string\)"),
    "501": (Answer(ERROR, status=501), "501 Not Implemented"),
    "503 with Retry-After": (Answer(ERROR, status=503, headers={"Retry-After": "1"}), "503 Service Unavailable"),
    "502": (Answer(b"", status=502), "502 Bad Gateway"),
    "504": (Answer(b"", status=504), "504 Gateway Timeout"),
    "408": (Answer(b"", status=408), "408 Request Timeout"),
    "425": (Answer(b"", status=425), "425 Too Early"),
    "redirect": (Answer(b"", status=303, headers={"Location": "/publications/17"}), "303 See Other"),
    "connection lost": (ConnectionError(), "the connection broke"),
    "cut body": (Answer(raw=b'HTTP/1.1 201 Created\r\ncontent-length: 50\r\n\r\n{"id": 1'), "the connection broke"),
    "garbled body": (Answer(b'{"id": 1\x1b', status=201), "not JSON"),
    "garbled body, 200": (Answer(b'{"id": 1\x1b', status=200), "garbled answer"),
    "web page": (Answer(b"<html>", status=200, headers={"content-type": "text/html"}), "a web page"),
    "unknown packing": (Answer(b"x", status=201, headers={"content-encoding": "br"}), "packed as br"),
    "no HTTP": (Answer(raw=b"confused\r\n\r\n"), "the connection broke"),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_a_post_that_ends_unclearly_is_never_repeated(serve: Serve, client_for: ClientFor, name: str) -> None:
    """I8: it may have created the record, and a repetition would create a second one."""
    answer, pattern = UNCLEAR[name]
    server = serve(in_turn(answer, CREATED))
    with pytest.raises(UnclearError, match=pattern) as caught:
        client_for(server.url).write("POST", "publications", BODY)
    assert len(server.received) == 1
    assert f"POST {server.url}/api/v2/publications" in str(caught.value)
    assert "confidential" not in str(caught.value), "I10: no message has the body"
    assert not isinstance(caught.value, TemporaryError), "code that repeats those must not repeat this"


def test_a_post_whose_answer_takes_too_long_is_unclear(serve: Serve, client_for: ClientFor) -> None:
    """Its effect is unknown."""
    timeout = httpx.MockTransport(lambda request: (_ for _ in ()).throw(httpx.ReadTimeout("", request=request)))
    with pytest.raises(UnclearError, match="the answer took too long"):
        client_for("http://127.0.0.1:1", transport=timeout).write("POST", "publications", BODY)


GONE, THROTTLED = Answer(ERROR, status=404), Answer(ERROR, status=429)
REPEATED: dict[str, tuple[str, list[Answer | Exception], str]] = {
    **{
        f"a {method} is repeated": (
            method,
            [Answer(ERROR, status=500), ConnectionError(), Answer(b'{"id"', status=200), Answer(b"", status=200)],
            "",
        )
        for method in ("PATCH", "DELETE")
    },
    "a DELETE that finds nothing any more has succeeded": ("DELETE", [Answer(ERROR, status=503), GONE], ""),
    "also after a connection that broke": ("DELETE", [ConnectionError(), GONE], ""),
    "a DELETE of a missing record is refused": ("DELETE", [GONE], "404"),
    "no request of ours can have removed it": ("DELETE", [THROTTLED, GONE], "404"),
    "a record that is gone was not changed": ("PATCH", [Answer(ERROR, status=503), GONE], "404"),
    "the try before a 429 had no effect": ("POST", [THROTTLED, Answer(ERROR, status=502)], "502"),
}
"""The method, the responses in turn, and the status of the error in the end."""


@pytest.mark.parametrize("name", REPEATED)
def test_what_is_repeated_and_how_it_ends(serve: Serve, client_for: ClientFor, name: str) -> None:
    """I8: PATCH and DELETE may be repeated; an empty response is a success, and so is a 404 to a DELETE that was repeated."""
    method, answers, error = REPEATED[name]
    server = serve(in_turn(*answers))
    client = client_for(server.url)
    if error:
        with pytest.raises(UnclearError if method == "POST" else RefusedError, match=error):
            client.write(method, "publications/17", BODY)
    else:
        assert client.write(method, "publications/17", BODY) is None
    assert len(server.received) == len(answers)


def test_a_post_that_never_left_says_that_it_had_no_effect(client_for: ClientFor) -> None:
    """No connection, no effect: it is tried again, and in the end the same command may simply be run again."""
    client = client_for("http://127.0.0.1:1")
    with pytest.raises(TemporaryError, match=r"failed after 7 tries .* cannot connect"):
        client.write("POST", "publications", BODY)
    assert client.requests == 0


@pytest.mark.parametrize(
    ("status", "error"),
    [*((status, RefusedError) for status in (400, 404, 409, 413, 422)), (401, SignInError), (403, AccessDeniedError)],
)
def test_a_refused_write_tells_status_and_words_of_the_service(
    serve: Serve, client_for: ClientFor, status: int, error: type[BookferryError]
) -> None:
    """service.md#references: status, code and message of the refusal, for the quarantine."""
    server = serve(in_turn(Answer(ERROR, status=status)))
    with pytest.raises(error) as caught:
        client_for(server.url).write("POST", "publications", BODY)
    assert (type(caught.value), len(server.received)) == (error, 1)
    if isinstance(caught.value, RefusedError):
        details = (caught.value.status, caught.value.code, caught.value.detail)
        assert details == (status, "Unprocessable", "categories: a string")
    assert "confidential" not in str(caught.value)


def test_a_post_that_is_under_way_when_the_run_stops_is_unclear(serve: Serve, client_for: ClientFor) -> None:
    """I8: the request has left, and its response is lost."""
    arrived, over = threading.Event(), threading.Event()

    def hang(_request: Received) -> Answer:
        arrived.set()
        over.wait(60)
        return CREATED

    client = client_for(serve(hang).url)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(client.write, "POST", "publications", BODY)
        assert arrived.wait(60)
        client.close()
        assert isinstance(writing.exception(60), UnclearError)
        over.set()


@pytest.mark.parametrize("path", ["../../login", "..%2f..%2flogin", "../v2/../../x"])
def test_a_write_never_leaves_the_api(serve: Serve, client_for: ClientFor, path: str) -> None:
    """I2: whatever an id in a plan may be."""
    server = serve(in_turn(CREATED))
    with pytest.raises(ForeignOriginError):
        client_for(server.url).write("POST", path, BODY)
    assert server.received == []


def test_one_record_is_an_object(serve: Serve, client_for: ClientFor) -> None:
    """Any other JSON is no record."""
    server = serve(in_turn(Answer({"id": 17, "price": 1.5}), Answer([1])))
    client = client_for(server.url)
    assert client.get_record("publications/17") == {"id": 17, "price": 1.5}
    with pytest.raises(ProtocolError, match="no object"):
        client.get_record("publications/17")


def test_a_record_that_is_not_there_is_none(serve: Serve, client_for: ClientFor) -> None:
    """Only a 404 says that; any other refusal leaves it open."""
    server = serve(in_turn(Answer({"id": 17}), Answer(ERROR, status=404), Answer(ERROR, status=422)))
    client = client_for(server.url)
    assert client.find_record("publications/17") == {"id": 17}
    assert client.find_record("publications/17") is None
    with pytest.raises(RefusedError, match="422"):
        client.find_record("publications/17")


def pages_of(total: int, headers: Callable[[int], dict[str, str]]) -> Script:
    """A list of so many records, in pages of 50."""

    def script(request: Received) -> Answer:
        first = (int(request.query["page"]) - 1) * 50
        records = [{"id": number} for number in range(first, min(first + 50, total))]
        return Answer({"records": records}, headers=headers(int(request.query["page"])))

    return script


def test_an_end_of_a_list_that_is_something_else_stops(serve: Serve, client_for: ClientFor) -> None:
    """An empty list would wrongly prove that nothing was created."""
    server = serve(in_turn(Answer({"hits": 3})))
    with pytest.raises(ProtocolError, match="no list of records"):
        client_for(server.url).list_ends("publications")


@pytest.mark.parametrize(
    ("total", "old", "pages"),
    [
        (0, set(), [1]),
        (40, {1}, [1]),
        (80, {1}, [1, 2]),
        (80, {2}, [1, 2]),
        (500, {1, 10}, [1, 10, 9]),
        (500, {1, 7}, [1, 10, 9, 8, 7]),
        (500, {3, 10}, [1, 10, 9, 2, 3]),
        (500, {9}, [1, 10, 9, 2, 3, 4, 5, 6, 7, 8]),
        (150, set(), [1, 3, 2]),
    ],
)
def test_both_ends_of_a_list_are_read_inwards_to_an_older_record(
    serve: Serve, client_for: ClientFor, total: int, old: set[int], pages: list[int]
) -> None:
    """A new record is at either end; `old`: the pages with a record that was there before. No page is read twice."""
    server = serve(pages_of(total, lambda _: {"x-total": str(total)}))
    ends = client_for(server.url).list_ends("tasks", lambda page: any(record["id"] // 50 + 1 in old for record in page))
    assert [int(request.query["page"]) for request in server.received] == pages
    assert {record["id"] // 50 + 1 for record in ends.records} == ({*pages} if total else set())
    assert ends.are_both


@pytest.mark.parametrize(("size", "headers"), [(50, {}), (30, {}), (50, {"link": '<?page=2>; rel="next"'})])
def test_the_last_page_of_a_list_is_not_always_known(
    serve: Serve, client_for: ClientFor, size: int, headers: dict[str, str]
) -> None:
    """Without X-Total and `rel="last"` nothing says that a new record is on the pages that were read."""
    server = serve(in_turn(Answer({"records": [{"id": number} for number in range(size)]}, headers=headers)))
    assert not client_for(server.url).list_ends("tasks").are_both
