"""Fetches pages in threads before they are needed, so that the budget is the limit and not the latency."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Generic, TypeVar

import httpx

from pipelines.service.http.paging import same_page
from pipelines.service.threads import in_thread

MAX_AHEAD = 160
"""Pages in flight at most: enough for 600 requests a minute at 12 s a page."""

QUICK = 6
"""Pages in flight while the service is quick; more if its latency needs it, and none if it responds at once."""

AT_ONCE = 0.005
"""Seconds: no page is fetched ahead from a service that responds sooner, because threads would cost more than they gain."""

IN_TURN = 0.9
"""Share of the time between two requests of the budget: pages that arrive sooner can be requested one after the other at no loss."""

MOST_IN_TURN = 2
"""Pages a second, twice the service's limit: a walk in turn need not be faster, even if a higher limit is configured."""

MOST_PAGES_A_SECOND = 100
"""Pages a second: if the budget allows more, more pages in flight would only queue in this process."""

AHEAD_BYTES = 256 * 1024 * 1024
"""Bytes of memory for pages in flight, estimated by the largest page so far (I11)."""

_Answer = TypeVar("_Answer")


class Prefetch(Generic[_Answer]):
    """The pages in flight, in the order in which they will be needed. Their threads never keep an interrupted process from ending."""

    def __init__(self, fetch: Callable[[httpx.URL], _Answer], requests_per_minute: int) -> None:
        self._fetch = fetch
        self._depth = PrefetchDepth(requests_per_minute)
        self._pages: deque[tuple[httpx.URL, Future[_Answer]]] = deque()

    def fill(
        self,
        upcoming: httpx.URL | None,
        foreseen: Callable[[httpx.URL], httpx.URL | None],
        seconds: float,
        size: int,
        *,
        in_turn: bool = False,
    ) -> None:
        """Fetch the pages after a page that took so many seconds and had so many bytes: `upcoming` and those that are foreseen after it.

        `in_turn`: request a page after the one before it has arrived, unless that would make the latency the limit.
        """
        most = self._depth.after(seconds, size)
        if in_turn and self._depth.keeps_up:
            most = 0
        following = foreseen(self._pages[-1][0]) if self._pages else upcoming
        while following is not None and len(self._pages) < most:
            self._pages.append((following, in_thread(partial(self._fetch, following), "listing", daemon=True)))
            following = foreseen(following)

    def leads_to(self, upcoming: httpx.URL | None) -> bool:
        """Whether the pages in flight, if any, begin with this one. If they do not, they are dropped."""
        as_foreseen = not self._pages or (upcoming is not None and same_page(self._pages[0][0], upcoming))
        if not as_foreseen:
            self.drop()
        return as_foreseen

    def has(self, url: httpx.URL) -> bool:
        """Whether the next page in flight is this one."""
        return bool(self._pages) and same_page(self._pages[0][0], url)

    def take(self, upcoming: httpx.URL) -> _Answer:
        """Return the next page, in flight or not. Raises the errors of fetching it."""
        return self._pages.popleft()[1].result() if self._pages else self._fetch(upcoming)

    def drop(self) -> None:
        """Forget the pages in flight: they were requested before the collection changed."""
        self._pages.clear()


class PrefetchDepth:
    """How many pages must be in flight so that the budget is the limit and not the latency.

    Little's law plus a quarter, and some pages for a reader that pauses; none if the service responds at once.
    """

    def __init__(self, requests_per_minute: int) -> None:
        self._pages_a_second = min(requests_per_minute / 60, MOST_PAGES_A_SECOND)
        self._seconds: float | None = None
        self._largest = 1

    @property
    def keeps_up(self) -> bool:
        """Whether the budget is the limit even with a single page in flight."""
        return (self._seconds or 0.0) * min(self._pages_a_second, MOST_IN_TURN) <= IN_TURN

    def after(self, seconds: float, size: int) -> int:
        """Return the number after one more page with these seconds (they count for a quarter) and bytes."""
        self._seconds = seconds if self._seconds is None else self._seconds + (seconds - self._seconds) / 4
        self._largest = max(self._largest, size)
        if self._seconds < AT_ONCE:
            return 0
        pages = QUICK + math.ceil(1.25 * self._seconds * self._pages_a_second)
        return max(1, min(pages, MAX_AHEAD, AHEAD_BYTES // self._largest))
