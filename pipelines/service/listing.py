"""Reads one resource page by page, ahead and in order, and gathers what proves that the listing is whole (I4, trap A2)."""

from __future__ import annotations

import math
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Self

import httpx
import msgspec

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError
from pipelines.service.client import LibraryClient
from pipelines.service.envelope import split_records
from pipelines.service.paging import (
    PER_PAGE,
    LoopGuard,
    Route,
    Signpost,
    is_unpaged,
    may_be_last,
    read_signpost,
    same_page,
)
from pipelines.service.redaction import outside_text
from pipelines.service.retries import SECONDS

__all__ = ["PER_PAGE", "Listing", "ListingFacts", "Page"]

MAX_AHEAD = 160
"""Pages in flight at most: enough for 600 requests a minute at 12 s a page."""

QUICK = 6
"""Pages in flight while the service answers quickly; more when its latency asks for it, and none when it answers at once."""

AT_ONCE = 0.005
"""Seconds: of a service that answers sooner no page is fetched ahead. Threads that take turns at the interpreter would cost more than
they gain."""

MOST_PAGES_A_SECOND = 100
"""Where the budget allows more, more pages in flight would only queue in this process."""

AHEAD_BYTES = 256 * 1024 * 1024
"""Memory for pages in flight, judged by the largest page so far (I11)."""


@dataclass(frozen=True)
class Page:
    """One answered page."""

    number: int
    """1 for the first page of the walk."""
    url: str
    records: Sequence[msgspec.Raw]
    """The records' JSON, byte for byte as received."""
    total: int | None
    """X-Total as this page gave it."""


@dataclass
class ListingFacts:
    """What a walk over a listing saw; a snapshot's proof is made from it."""

    endpoint: str = ""
    pages: int = 0
    records: int = 0
    first_total: int | None = None
    last_total: int | None = None
    totals_seen: int = 0
    """How often X-Total changed, the first sight counted: 0 where the service sends none, 1 where it stood still."""
    requests: int = 0
    seconds: float = 0.0

    def count(self, page: Page) -> None:
        """Take one more page into account."""
        self.pages += 1
        self.records += len(page.records)
        if page.total is None:
            return
        if self.totals_seen == 0:
            self.first_total = page.total
        if self.totals_seen == 0 or page.total != self.last_total:
            self.totals_seen += 1
        self.last_total = page.total


@dataclass(frozen=True)
class _Answer:
    signpost: Signpost
    records: Sequence[msgspec.Raw]
    size: int
    """Bytes of its body."""
    seconds: float
    """From sending to the end of the body, without any wait for the budget."""


class Listing:
    """One walk over a resource. Iterate `pages()` once; `facts` is complete when it ended.

    `endpoints` are tried in order, the first one that the service has is walked: service-api.md names a backup endpoint
    `/publications/all`, but not the version it belongs to.
    """

    def __init__(self, client: LibraryClient, endpoints: Sequence[str]) -> None:
        self._client = client
        self._endpoints = endpoints
        self.facts = ListingFacts()

    def pages(self) -> Iterator[Page]:
        """The pages in order. Raises `PagingLoopError` when the listing repeats itself or goes on without end."""
        started, already_sent = self._client.clock.monotonic(), self._client.requests
        with _Workers(self._fetch) as workers:
            for number, answer in enumerate(self._walk(workers), start=1):
                page = Page(number, str(answer.signpost.url), answer.records, answer.signpost.total)
                self.facts.count(page)
                self.facts.requests = self._client.requests - already_sent
                self.facts.seconds = self._client.clock.monotonic() - started
                yield page
            self.facts.requests = self._client.requests - already_sent

    def _walk(self, workers: _Workers) -> Iterator[_Answer]:
        answer = self._first()
        route, guard, depth = Route(), LoopGuard(), Depth(self._client.requests_per_minute)
        ahead: deque[tuple[httpx.URL, Future[_Answer]]] = deque()
        while True:
            upcoming = route.after(answer.signpost)
            guard.check(answer.signpost, answer.records, upcoming)
            if ahead and (upcoming is None or not same_page(ahead[0][0], upcoming)):
                ahead.clear()
                route.stop_foreseeing()
            most = depth.after(answer.seconds, answer.size)
            following = route.foreseen(ahead[-1][0]) if ahead else upcoming
            while following is not None and len(ahead) < most:
                ahead.append((following, workers.submit(following)))
                following = route.foreseen(following)
            yield answer
            if upcoming is None:
                return
            coming = ahead.popleft()[1].result if ahead else partial(self._fetch, upcoming)
            following_answer = self._after(answer, coming)
            if following_answer is None:
                return
            answer = following_answer

    def _after(self, answer: _Answer, coming: Callable[[], _Answer]) -> _Answer | None:
        """The next page; `None` where a service without paging headers has shown that there is none."""
        try:
            following = coming()
        except RefusedError as error:
            if error.status == httpx.codes.NOT_FOUND and may_be_last(answer.signpost):
                return None
            raise
        return None if is_unpaged(answer.signpost, answer.records, following.records) else following

    def _first(self) -> _Answer:
        missing: Exception | None = None
        for endpoint in self._endpoints:
            url = httpx.URL(f"{self._client.api_url}/{endpoint}", params={"per_page": PER_PAGE, "page": 1})
            try:
                answer = self._fetch(url)
            except (RefusedError, ProtocolError, AccessDeniedError) as error:
                missing = error  # not there, not a listing, or not for this account: the next one may be
            else:
                self.facts.endpoint = endpoint
                return answer
        assert missing is not None  # noqa: S101  endpoints is never empty
        raise missing

    def _fetch(self, url: httpx.URL) -> _Answer:
        response = self._client.get(url)
        try:
            records = split_records(response.content)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ProtocolError(
                f"GET {outside_text(url)} answered something that is not a listing ({outside_text(error)}); expected an array, or an "
                "object with `records` or one other array of objects."
            ) from None
        signpost = read_signpost(response, url, len(records))
        return _Answer(signpost, records, len(response.content), response.extensions[SECONDS])


class Depth:
    """How many pages to have in flight so that the budget, not the latency, is the limit.

    Little's law, a quarter for good measure, and some for a reader that pauses; none where the service answers at once.
    """

    def __init__(self, requests_per_minute: int) -> None:
        self._pages_a_second = min(requests_per_minute / 60, MOST_PAGES_A_SECOND)
        self._seconds: float | None = None
        self._largest = 1

    def after(self, seconds: float, size: int) -> int:
        """The number, after one more page, which took so long (it counts for a quarter) and had so many bytes."""
        self._seconds = seconds if self._seconds is None else self._seconds + (seconds - self._seconds) / 4
        self._largest = max(self._largest, size)
        if self._seconds < AT_ONCE:
            return 0
        wanted = QUICK + math.ceil(1.25 * self._seconds * self._pages_a_second)
        return max(1, min(wanted, MAX_AHEAD, AHEAD_BYTES // self._largest))


class _Workers:
    """Daemon threads that fetch pages: unlike a pool's, they never keep an interrupted process from ending."""

    def __init__(self, fetch: Callable[[httpx.URL], _Answer]) -> None:
        self._fetch = fetch
        self._jobs: queue.SimpleQueue[tuple[httpx.URL, Future[_Answer]] | None] = queue.SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._lock = threading.Lock()

    def submit(self, url: httpx.URL) -> Future[_Answer]:
        """Have a page fetched at once, by a thread that is free or a new one."""
        future: Future[_Answer] = Future()
        with self._lock:
            self._busy += 1
            if self._busy > self._threads:
                self._threads += 1
                threading.Thread(target=self._work, name="listing", daemon=True).start()
        self._jobs.put((url, future))
        return future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            url, future = job
            try:
                future.set_result(self._fetch(url))
            except BaseException as error:  # noqa: BLE001  whatever it is, the reader of the page must hear it
                future.set_exception(error)
            with self._lock:
                self._busy -= 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _thread in range(self._threads):
            self._jobs.put(None)
