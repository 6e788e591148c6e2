"""Reads one resource page by page, and collects the figures that prove the listing complete (I4).

A list whose ids grow or shrink is read from its newest record to its oldest (`descent`), so that changes meanwhile do no harm. Any other
list is read from its first page to its last; if it changes meanwhile, nothing is proved, and another walk may do better. An interrupted
walk resumes from the pages in its log (I9).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import httpx

from pipelines.errors import BookferryError
from pipelines.service.client import LibraryClient
from pipelines.service.http.paging import (
    LoopGuard,
    Route,
    is_counted,
    is_same,
    is_unpaged,
    may_be_last,
    page_at,
    page_number,
)
from pipelines.service.listing.descent import Descent
from pipelines.service.listing.gaps import may_be_of_a_record
from pipelines.service.listing.listing_facts import ListingFacts, Page
from pipelines.service.listing.page_checkpoint import PageCheckpoint, SavedPage, WalkLog
from pipelines.service.listing.page_requests import UNREADABLE, PageRequests
from pipelines.service.listing.prefetch import Prefetch


class Listing:
    """One walk over a resource. Iterate `pages()` once; `facts` is complete when the iteration ended.

    `endpoints` are tried in order, and the walk uses the first one that the service has (service.md#lists). `walk`: its number in the
    `log`.
    """

    def __init__(
        self,
        client: LibraryClient,
        endpoints: Sequence[str],
        *,
        log: WalkLog | None = None,
        walk: int = 1,
    ) -> None:
        self._client = client
        self._requests = PageRequests(client, endpoints)
        self._log, self._endpoints = log or WalkLog(), endpoints
        self._number = walk
        self._descent: Descent | None = None
        self._template = httpx.URL()
        self._route, self._guard = Route(), LoopGuard()
        self._ahead = Prefetch(self._requests.read, client.requests_per_minute)
        self._upcoming: httpx.URL | None = None
        self._started, self._sent = client.clock.monotonic(), client.requests
        self._requests_before, self._seconds_before = 0, 0.0
        self.facts = ListingFacts()

    def pages(self) -> Iterator[Page]:
        """Yield the pages as they are read; a page that is read again comes again.

        Raises `PagingLoopError` if the listing repeats itself or goes on without end.
        """
        try:
            yield from self._walk()
        except UNREADABLE as error:
            self._stop(error)
        finally:  # a walk that was given up has cost its requests, too
            self._account()

    # ---- the walk

    def _walk(self) -> Generator[Page, None, None]:
        """Yield the first page, or those of the log, and then each page to which the ones before it lead."""
        answer = yield from self._begin()
        while (url := self._next) is not None:
            in_turn = not self._ahead.has(url)
            following = self._page(url)
            if following is None:
                if self._descent is None:
                    self.facts.unsettled |= not may_be_last(answer.paging)  # the list has become shorter
                    return
                self._descent.take_missing(page_number(url) or 1)
            elif self._descent is None and is_unpaged(answer.paging, answer.records, following.records):
                return
            else:
                answer = following
                yield self._keep(answer, in_turn=in_turn)
        if self._descent is not None:
            self._settle(self._descent)

    @property
    def _next(self) -> httpx.URL | None:
        """The address of the next page; `None` at the end of the walk."""
        if self._descent is None:
            return self._upcoming
        return None if (number := self._descent.next_page) is None else page_at(self._template, number)

    def _foreseen(self, url: httpx.URL) -> httpx.URL | None:
        """The address of the page after the one at `url`; `None` if it is not certain."""
        if self._descent is None:
            return self._route.foreseen(url)
        number = self._descent.foreseen(page_number(url) or 1)
        return None if number is None else page_at(self._template, number)

    def _stop(self, error: BookferryError) -> None:
        """Name what is not read of a list with too many gaps, and keep what was read. Raises any other error."""
        if not (self._requests.gave_up and self.facts.records and may_be_of_a_record(error)):
            raise error
        first, last = self._requests.place_of(self._upcoming or self._template), self.facts.last_total
        if self._descent is not None:
            first, last = self._descent.unread
            self._settle(self._descent)
        which = "on" if last is None else f"to {last:,}"
        self.facts.unread.append(
            f"The list was not read from place {first:,} {which}, because too many of its pages cannot be sent. The next backup asks for "
            f"them again. {error}"
        )

    def _begin(self) -> Generator[Page, None, SavedPage]:
        """Yield the first page; or the pages of the log, whose last page must be unchanged unless the walk goes down the list."""
        answer = None
        for checkpoint, answer in self._log.replay(self._endpoints, self._number):
            self.facts.endpoint = checkpoint.endpoint
            self._requests_before, self._seconds_before = checkpoint.requests, checkpoint.seconds
            self.facts.resumed += 1
            self._requests.take(answer)
            yield self._accept(checkpoint.number, answer, in_turn=checkpoint.in_turn)
        if answer is None:
            self.facts.endpoint, answer = self._requests.first()
            yield self._keep(answer)
        elif self._descent is None and self._upcoming is not None:
            newest = self._page(answer.paging.url)
            if (
                newest is None
                or newest.paging.total != answer.paging.total
                or not is_same(newest.records, answer.records)
            ):
                self.facts.unsettled = True  # the pages of the log are no beginning of the present collection
        return answer

    def _settle(self, descent: Descent) -> None:
        """Take over the verdict of the walk down the list. In a list without order, X-Total alone decides, as on the way up."""
        self.facts.again += descent.again
        if descent.is_sound and not descent.is_quiet:
            self.facts.follow(descent.added, descent.deleted, descent.end_total, moved=descent.has_moved)
        elif not descent.is_sound and (descent.in_order or descent.total_changed):
            self.facts.unsettled = True

    # ---- one page

    def _keep(self, answer: SavedPage, *, in_turn: bool = True) -> Page:
        """Make a page part of the walk and of its log, and fetch those after it ahead."""
        number = self.facts.pages + 1 if self._descent is None else self._descent.next_page or 1
        page = self._accept(number, answer, in_turn=in_turn)
        mark = PageCheckpoint(
            number,
            self.facts.endpoint,
            self._number,
            answer.paging,
            in_turn=in_turn,
            requests=self.facts.requests,
            seconds=self.facts.seconds,
            gaps=answer.gaps,
            moved=answer.moved,
        )
        self._log.append(mark, answer.body)
        is_down = self._descent is not None
        if not self._ahead.leads_to(self._next):
            self._route.stop_foreseeing()
        if not is_down or self._number == 1:  # an earlier walk may have failed because pages were in flight together
            self._ahead.fill(self._next, self._foreseen, answer.seconds, len(answer.body), in_turn=is_down)
        return page

    def _accept(self, number: int, answer: SavedPage, *, in_turn: bool) -> Page:
        paging = answer.paging
        if self._descent is not None:
            lacking = paging.records - len(answer.records)
            self._descent.take(number, answer.ids, paging.total, in_turn=in_turn, lacking=lacking)
        else:
            if None not in (paging.total, self.facts.last_total) and paging.total != self.facts.last_total:
                self.facts.unsettled = True
                self._guard.forget()  # shifted records are no loop
            self._upcoming = self._route.after(paging)
            self._guard.check(paging, answer.records, self._upcoming)
        page = Page(number, str(paging.url), answer.records, answer.ids, paging.total)
        self.facts.count(page, answer.gaps)
        self.facts.unsettled |= answer.moved
        self._account()
        if self.facts.pages == 1:
            self._descent = self._way_down(answer)
        return page

    def _way_down(self, answer: SavedPage) -> Descent | None:
        """Return the way down the list that begins with this page, if it has one."""
        paging, second = answer.paging, self._upcoming
        if answer.gaps or second is None or not is_counted(paging.url, second):
            return None
        self._template = second
        has_first_two = (page_number(paging.url), page_number(second)) == (1, 2)
        return Descent.begin(answer.ids, paging.total) if has_first_two else None

    def _page(self, url: httpx.URL) -> SavedPage | None:
        """Return the next page, in flight or not; `None` if the list ends before it. Gaps are looked for in the order of the walk."""
        try:
            return self._ahead.take(url)
        except UNREADABLE as error:
            return self._requests.around(url, error)

    def _account(self) -> None:
        """Add up requests and seconds, including those of earlier processes."""
        self.facts.requests = self._requests_before + self._client.requests - self._sent
        self.facts.seconds = self._seconds_before + self._client.clock.monotonic() - self._started
