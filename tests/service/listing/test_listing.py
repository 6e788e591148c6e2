"""I4, I13: every record once, in order, with as few requests as there are pages, whatever the service is like."""

from __future__ import annotations

import itertools
import random
import threading
import time
from dataclasses import dataclass, field
from math import ceil
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.errors import (
    BookferryError,
    PagingLoopError,
    ProtocolError,
    RefusedError,
    SignInError,
    TemporaryError,
)
from pipelines.service.http.budget import Budget
from pipelines.service.listing.listing import Listing
from pipelines.service.listing.prefetch import MAX_AHEAD, QUICK, PrefetchDepth
from tests.service.conftest import ClientFor, Serve
from tests.service.listing.clients import client_of, unlimited_budget
from tests.service.scripted import Answer, Received, Script

__all__ = ["unlimited_budget"]  # a fixture


ENDPOINTS = ("publications/all", "publications")


def ids(listing: Listing) -> list[int]:
    """Returns the ids of all records, in the order of their arrival."""
    return [msgspec.json.decode(record)["id"] for page in listing.pages() for record in page.records]


# ---- a model of every service that the document allows -------------------------------------------------------------------------------


@dataclass
class ModelService(httpx.BaseTransport):
    """A service with `total` records that pages as its settings say. Knows nothing of the client's walk."""

    total: int
    page_size: int = 50
    link: str = "absolute"
    x_total: bool = True
    bare: bool = False
    has_all: bool = True
    sorted: bool = True
    """Whether the list is in the order of its ids, so that it is read down from its newest record."""
    latencies: list[float] = field(default_factory=lambda: [0.0])
    asked: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._latency = itertools.cycle(self.latencies)
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return one page, or an error that it does not exist."""
        endpoint = request.url.path.removeprefix("/api/v2/")
        number, size = int(request.url.params["page"]), min(int(request.url.params["per_page"]), self.page_size)
        with self._lock:
            self.asked.append((endpoint, number))
            latency = next(self._latency)
        time.sleep(latency)
        if endpoint == "publications/all" and not self.has_all:
            return httpx.Response(
                404, json={"error": {"code": "RecordNotFound", "message": "Requested record not found"}}
            )
        total = self.total_at(number)
        chosen = [{"id": record_id} for record_id in range((number - 1) * size + 1, min(number * size, total) + 1)]
        if not self.sorted:
            chosen[:2] = reversed(chosen[:2])
        headers = [("X-Total", str(total))] if self.x_total else []
        headers += [("Link", self._link(request.url, number, size))] if self.link != "none" else []
        return httpx.Response(200, json=chosen if self.bare else {"records": chosen}, headers=headers)

    def total_at(self, _page: int) -> int:
        """Return the number of records when this page is requested."""
        return self.total

    def _link(self, url: httpx.URL, number: int, size: int) -> str:
        last = max(1, ceil(self.total_at(number) / size))
        pages = {"first": 1, "prev": number - 1, "next": number + 1, "last": last}
        if self.link == "next only":
            del pages["first"], pages["last"]
        return ", ".join(
            f'<{self._address(url, page)}>; rel="{rel}"' for rel, page in pages.items() if 1 <= page <= last
        )

    def _address(self, url: httpx.URL, page: int) -> str:
        params = {"per_page": url.params["per_page"], "page": str(page)}
        query = {
            "other order": urlencode(dict(reversed(params.items()))),
            "without size": f"page={page}",
            "own size": urlencode(params | {"per_page": str(self.page_size)}),
        }.get(self.link, urlencode(params))
        return f"{'' if self.link == 'relative' else url.copy_with(query=None)}?{query}"

    def requests_needed(self) -> int:
        """Returns one for each page, one for a missing /publications/all, one for the empty page if nothing else shows the end."""
        pages = max(1, ceil(self.total / self.page_size))
        no_link = self.link == "none" or (self.link == "next only" and pages == 1)
        return pages + (not self.has_all) + (no_link and not self.x_total and self.total > 0)


models = st.builds(
    ModelService,
    total=st.integers(0, 260) | st.sampled_from([0, 1, 49, 50, 51, 99, 100, 101, 250]),
    page_size=st.sampled_from([50, 50, 25, 10]) | st.integers(5, 50),
    link=st.sampled_from(["absolute", "relative", "other order", "without size", "own size", "next only", "none"]),
    x_total=st.booleans(),
    bare=st.booleans(),
    has_all=st.booleans(),
    sorted=st.booleans(),
    latencies=st.lists(st.sampled_from([0.0, 0.0, 0.001, 0.004]), min_size=1, max_size=9),
)


def listing_of(service: httpx.BaseTransport, budget: Budget, endpoints: tuple[str, ...] = ENDPOINTS) -> Listing:
    client = client_of(service, budget)
    return Listing(client, endpoints)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(models)
@example(ModelService(400, page_size=10, link="none", latencies=[0.004, 0.0, 0.001]))
@example(ModelService(101, page_size=25, link="without size", x_total=False, has_all=False))
def test_every_record_comes_once_with_one_request_a_page(unlimited_budget: Budget, service: ModelService) -> None:
    """I4: every page size, form of links, count and latency.

    The listing takes ceil(N/50) requests, at most one more; here with the service's own page size.
    """
    service.asked.clear()
    listing = listing_of(service, unlimited_budget)
    pages = list(listing.pages())
    assert sorted(number for page in pages for number in page.ids if number) == list(range(1, service.total + 1))
    assert service.sorted or [page.number for page in pages] == [*range(1, len(pages) + 1)], (
        "whatever overtakes another"
    )
    facts = listing.facts
    assert len(service.asked) == service.requests_needed() == facts.requests
    assert len(set(service.asked)) == len(service.asked)
    assert facts.records == service.total
    assert (facts.first_total, facts.last_total) == ((service.total,) * 2 if service.x_total else (None, None))
    assert facts.totals_seen == service.x_total
    assert facts.endpoint == ("publications/all" if service.has_all else "publications")


# ---- pages fetched ahead --------------------------------------------------------------------------------------------------------------


class Leading(ModelService):
    """A service whose links lead where `road` says: page → page."""

    road: dict[int, int]

    def _link(self, url: httpx.URL, number: int, size: int) -> str:
        target = self.road.get(number, number + 1)
        return (
            f'<{self._address(url, target)}>; rel="next"'
            if (target - 1) * size < self.total
            else '<?page=1>; rel="first"'
        )


@pytest.mark.parametrize("road", [{1: 3}, {5: 7}, {5: 9, 10: 20}, {2: 12, 13: 3, 11: 21}])
def test_an_unforeseen_link_is_followed(unlimited_budget: Budget, road: dict[int, int]) -> None:
    """service.md#lists, "Link decides": no linked page is skipped, none comes twice, and wasted requests stay bounded."""
    service = Leading(1500, sorted=False, latencies=[0.002, 0.0])
    service.road = road
    expected, number = [], 1
    while number <= 30:
        expected.append(number)
        number = road.get(number, number + 1)
    listing = listing_of(service, unlimited_budget)
    assert ids(listing) == [(page - 1) * 50 + k for page in expected for k in (2, 1, *range(3, 51))]
    assert len(service.asked) <= len(expected) + MAX_AHEAD


class Watched(ModelService):
    """Counts the requests that are under way at once."""

    current = peak = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Respond, and count meanwhile."""
        with self._lock:
            self.current += 1
            self.peak = max(self.peak, self.current)
        try:
            return super().handle_request(request)
        finally:
            with self._lock:
                self.current -= 1


@pytest.mark.parametrize("sorted_by_id", [True, False])
def test_latency_is_hidden_by_pages_fetched_ahead(unlimited_budget: Budget, *, sorted_by_id: bool) -> None:
    """At 2 seconds of latency per page, the budget still is the only limit: many pages are in flight at once."""
    service = Watched(1000, latencies=[0.5], sorted=sorted_by_id)
    assert len(ids(listing_of(service, unlimited_budget))) == 1000
    assert QUICK <= service.peak <= MAX_AHEAD


def test_pages_of_a_sorted_list_are_requested_in_turn(
    unlimited_budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that overtakes the page above it could miss a record. While the budget is the limit, none does."""
    depth = PrefetchDepth(60)
    for seconds, keeps_up in ((0.02, True), (10.0, False)):
        depth.after(seconds, 1)
        assert depth.keeps_up == keeps_up
    monkeypatch.setattr(PrefetchDepth, "keeps_up", True)  # a busy machine is slow
    service = Watched(1000, latencies=[0.02])
    assert len(ids(listing_of(service, unlimited_budget))) == 1000
    assert service.peak == 1


def test_large_pages_are_not_piled_up() -> None:
    """I11: 160 pages of 64 MiB would be 10 GiB."""
    depth = PrefetchDepth(600)
    assert depth.after(10.0, 64 * 2**20) == 4
    assert depth.after(10.0, 1) == 4


def test_a_reader_that_stops_asks_for_nothing_more(unlimited_budget: Budget) -> None:
    """I9: only the pages in flight are wasted."""
    service = ModelService(50_000, latencies=[0.01])
    pages = listing_of(service, unlimited_budget).pages()
    next(pages)
    pages.close()  # type: ignore[attr-defined]
    wait_for_workers()
    assert len(service.asked) <= 1 + 2 * QUICK


def wait_for_workers() -> None:
    """Waits until the listing's threads have ended."""
    for thread in threading.enumerate():
        if thread.name == "listing":
            thread.join(5)
            assert not thread.is_alive()


@pytest.mark.parametrize("sorted_by_id", [True, False])
def test_the_error_of_a_page_comes_where_the_page_would(unlimited_budget: Budget, *, sorted_by_id: bool) -> None:
    """I6: pages before it are delivered, none after it, and the listing's threads end."""

    class Refusing(ModelService):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.params["page"] == "7":
                return httpx.Response(401, json={})
            return super().handle_request(request)

    service, numbers = Refusing(1000, sorted=sorted_by_id, latencies=[0.0, 0.003]), list[int]()
    with pytest.raises(SignInError):
        numbers.extend(page.number for page in listing_of(service, unlimited_budget).pages())
    assert numbers == ([1, *range(20, 7, -1)] if sorted_by_id else [1, 2, 3, 4, 5, 6])
    wait_for_workers()


# ---- the backup endpoint --------------------------------------------------------------------------------------------------------------


def without_all(answer: Answer) -> Script:
    """A service whose /publications/all responds with this."""

    def script(request: Received) -> Answer:
        return answer if request.path.endswith("/all") else Answer({"records": [{"id": 1}]}, headers={"X-Total": "1"})

    return script


ERROR = {"error": {"code": "RecordNotFound", "message": "Requested record not found"}}


@pytest.mark.parametrize(
    "answer",
    [
        *[Answer(ERROR, status=status) for status in (400, 403, 404, 405, 406, 410, 422, 501)],
        Answer({"id": 17, "title": "the publication called all"}),
        Answer(b"<html>", headers={"content-type": "text/html"}),
        Answer(status=302, headers={"Location": "/login"}),
        Answer(status=204),
    ],
    ids=lambda answer: f"{answer.status} {answer.content()[:9]!r}",
)
def test_where_publications_all_is_missing_publications_is_read(
    serve: Serve, client_for: ClientFor, answer: Answer
) -> None:
    """service.md#not-shown: the version of /publications/all is unknown; any refusal costs one request."""
    server = serve(without_all(answer))
    listing = Listing(client_for(server.url), ENDPOINTS)
    assert ids(listing) == [1]
    assert (listing.facts.endpoint, listing.facts.requests) == ("publications", 2)
    assert [request.path for request in server.received] == ["/api/v2/publications/all", "/api/v2/publications"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [(Answer(status=401), SignInError), (Answer(status=500), TemporaryError), (Answer(raw=b""), TemporaryError)],
)
def test_where_publications_all_fails_for_another_reason_nothing_else_is_tried(
    serve: Serve, client_for: ClientFor, answer: Answer, error: type[BookferryError]
) -> None:
    """I6: /publications may contain less than /publications/all; a failure must not silently make a smaller backup."""
    server = serve(without_all(answer))
    with pytest.raises(error):
        ids(Listing(client_for(server.url), ENDPOINTS))
    assert {request.path for request in server.received} == {"/api/v2/publications/all"}


# ---- lists that say nothing of pages --------------------------------------------------------------------------------------------------


def paged(size: int, total: int, beyond: Answer) -> Script:
    """Pages without paging headers; `beyond` is the response after the last one."""

    def script(request: Received) -> Answer:
        first = (number_of(request) - 1) * size + 1
        numbers = range(first, min(first + size, total + 1))
        return Answer([{"id": number} for number in numbers]) if numbers else beyond

    return script


UNPAGED: dict[str, tuple[Script, int, int]] = {
    "the same page again": (lambda _: Answer([{"id": 1}, {"id": 2}]), 2, 2),
    "more than a page, the same again": (
        lambda _: Answer({"users": [{"id": record_id} for record_id in range(1, 121)]}),
        120,
        2,
    ),
    "then an empty page": (paged(50, 70, Answer([])), 70, 3),
    "an empty page after a full one": (paged(50, 100, Answer([])), 100, 3),
    "smaller pages than asked for": (paged(10, 35, Answer([])), 35, 5),
    "then a 404": (paged(50, 70, Answer(ERROR, status=404)), 70, 3),
    "nothing at all": (lambda _: Answer([]), 0, 1),
}


@pytest.mark.parametrize("name", UNPAGED)
def test_a_list_without_paging_headers(serve: Serve, client_for: ClientFor, name: str) -> None:
    """service.md#lists shows `X-Total` and `Link` for publications; a list without both ends where the service shows its end."""
    script, expected, requests = UNPAGED[name]
    listing = Listing(client_for(serve(script).url), ("users",))
    assert ids(listing) == list(range(1, expected + 1))
    assert (listing.facts.records, listing.facts.requests) == (expected, requests)


@pytest.mark.parametrize("size", [25, 50])
def test_a_full_page_and_then_a_404_is_no_end(serve: Serve, client_for: ClientFor, size: int) -> None:
    """I6: more records may follow a full page; an uncertain end does not count as complete."""
    with pytest.raises(RefusedError):
        ids(Listing(client_for(serve(paged(size, size, Answer(ERROR, status=404))).url), ("users",)))


# ---- hostile services -----------------------------------------------------------------------------------------------------------------


def records(*numbers: int) -> dict[str, Any]:
    """A page whose every response differs, as signed addresses make it."""
    return {"records": [{"id": number, "url": f"signed {random.random()}"} for number in numbers]}


def linked(page: object, body: Any, **headers: str) -> Answer:
    """A response that names a next page."""
    return Answer(body, headers={"Link": f'<?per_page=50&page={page}>; rel="next"', **headers})


def number_of(request: Received) -> int:
    return int(request.query["page"])


HOSTILE: dict[str, tuple[Script, type[BookferryError], str]] = {
    "a circle of two pages": (
        lambda request: linked(3 - number_of(request), records(number_of(request))),
        PagingLoopError,
        "leads back to a page that was read before",
    ),
    "always the same page": (
        lambda request: linked(number_of(request) + 1, records(1, 2, 3)),
        PagingLoopError,
        "repeats an earlier page",
    ),
    "the same records without an id": (
        lambda request: linked(number_of(request) + 1, [{}, {"title": str(number_of(request) % 2)}, 17, None]),
        PagingLoopError,
        "repeats an earlier page",
    ),
    "a full page is answered again and again without paging headers": (
        lambda _: Answer(records(*range(50))),
        PagingLoopError,
        "repeats an earlier page",
    ),
    "empty pages for ever": (
        lambda request: linked(number_of(request) + 1, records(), **{"X-Total": "500"}),
        PagingLoopError,
        "goes on after 2 pages without records",
    ),
    "new records for ever": (
        lambda request: linked(
            number_of(request) + 1,
            records(*range(50 * number_of(request), 50 * number_of(request) + 50)),
            **{"X-Total": "7"},
        ),
        PagingLoopError,
        "far beyond its own count",
    ),
    "another shape": (lambda _: Answer({"data": {"rows": []}}), ProtocolError, "not a listing"),
    "a web page": (
        lambda _: Answer(b"<!doctype html>", headers={"content-type": "text/html; charset=utf-8"}),
        ProtocolError,
        "a web page instead of JSON",
    ),
    "a web page that says it is JSON": (lambda _: Answer(b"<!doctype html>"), TemporaryError, "garbled answer"),
    "deep nesting": (lambda _: Answer(b'{"records":' + b"[" * 200_000), ProtocolError, "nested too deeply"),
    "cut": (
        lambda _: Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n[{}"),
        TemporaryError,
        "the connection broke",
    ),
    "not HTTP": (lambda _: Answer(raw=b"SSH-2.0-\x1b[2J\r\n" * 9), TemporaryError, "the connection broke"),
    "a head without end": (
        lambda _: Answer(raw=b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000),
        TemporaryError,
        "the connection broke",
    ),
    "a next page that is no address": (
        lambda _: Answer(records(1), headers={"Link": "<http://[:x]:y/>; rel=next"}),
        ProtocolError,
        "cannot be understood",
    ),
    "a next page at a host that cannot be decoded": (
        lambda request: Answer(records(number_of(request)), headers={"Link": "<https://xn--n3h.org/>; rel=next"}),
        ProtocolError,
        "cannot be understood",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_service_ends_in_one_clear_error(serve: Serve, client_for: ClientFor, name: str) -> None:
    """I13: page links, JSON and sizes from outside are untrusted: no unbounded read, no endless paging."""
    script, error, message = HOSTILE[name]
    server = serve(script)
    client = client_for(server.url)
    with pytest.raises(error, match=message) as caught:
        list(Listing(client, ["publications"]).pages())
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
    assert caught.value.__cause__ is None or caught.value.__suppress_context__
    assert client.requests == len(server.received) < 50


@pytest.mark.parametrize("total", ["-5", "many", "", "1.5", "9" * 40, "0x10", "100000", "999999999999999"])
@pytest.mark.parametrize("link", ["absolute", "none"])
def test_an_absurd_x_total(unlimited_budget: Budget, total: str, link: str) -> None:
    """I13, I4: three pages are read all the same, few requests go beyond the end, and what is no number counts as not sent."""

    class Absurd(ModelService):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            response.headers["X-Total"] = total
            return response

    listing, announced = listing_of(Absurd(3, page_size=1, link=link), unlimited_budget), len(total) in (6, 15)
    assert ids(listing) == [1, 2, 3]
    assert listing.facts.last_total == (int(total) if announced else None)
    assert listing.facts.totals_seen == announced
    assert listing.facts.requests <= 4 + MAX_AHEAD


@pytest.mark.parametrize("record", [None, 17, {}, {"id": None}, {"id": 1, "hidden": True}])
def test_records_are_counted_before_any_filter(serve: Serve, client_for: ClientFor, record: object) -> None:
    """service.md#lists: count what the server sent, before any filter; else the walk ends early."""
    page = [*records(*range(40))["records"], *[record] * 10]
    server = serve(lambda request: Answer([{"id": request.query["page"]}, *page[1:]], headers={"X-Total": "150"}))
    listing = Listing(client_for(server.url), ["publications"])
    assert [len(page.records) for page in listing.pages()] == [50, 50, 50]
    assert len(server.received) == 3
