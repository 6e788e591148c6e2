"""Reads one resource page by page, and collects the figures that prove the listing complete (I4).

A list whose ids grow or shrink is read from its newest record to its oldest (`descent`), so that changes meanwhile do no harm. Any other
list is read from its first page to its last; if it changes meanwhile, nothing is proved, and another walk may do better. An interrupted
walk resumes from the pages in its log (I9).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import httpx

from pipelines.errors import BookferryError
from pipelines.service.client import LibraryClient
from pipelines.service.http.envelope import says_more
from pipelines.service.http.paging import (
    LoopGuard,
    Route,
    is_counted,
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
    `log`. `may_go_down`: the list may be in the order of its ids.
    """

    def __init__(
        self,
        client: LibraryClient,
        endpoints: Sequence[str],
        *,
        log: WalkLog | None = None,
        walk: int = 1,
        may_go_down: bool = True,
    ) -> None:
        self._client = client
        self._requests = PageRequests(client, endpoints)
        self._log, self._endpoints = log or WalkLog(), endpoints
        self._number, self._may_go_down = walk, may_go_down
        self._descent: Descent | None = None
        self._template = httpx.URL()
        self._newest: SavedPage | None = None
        self._route, self._guard = Route(), LoopGuard()
        self._ahead = Prefetch(self._requests.read, client.requests_per_minute)
        self._upcoming: httpx.URL | None = None
        self._started, self._sent = client.clock.monotonic(), client.requests
        self._requests_before, self._seconds_before = 0, 0.0
        self.facts = ListingFacts()
        self.is_unsorted = False
        """Whether the walk went down the list and found that it does not have the order of its ids."""

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

    def _walk(self) -> Iterator[Page]:
        yield from self._begin()
        while (url := self._next) is not None:
            in_turn = not self._ahead.has(url)
            answer = self._page(url)
            if answer is None:
                self._note_missing()
            elif self._goes_on(answer):
                yield self._keep(answer, in_turn=in_turn)
        if self._descent is not None:
            self._settle(self._descent)

    def _begin(self) -> Iterator[Page]:
        """Yield the first page; or the pages of the log, whose last page must be unchanged unless the walk goes down the list."""
        yield from self._replayed()
        newest = self._newest
        if newest is None:
            self.facts.endpoint, first = self._requests.first()
            yield self._keep(first)
        elif self._descent is None and self._upcoming is not None:
            now = self._page(newest.paging.url)
            if now is None or (now.keys, now.paging.total) != (newest.keys, newest.paging.total):
                self.facts.unsettled = True  # the pages of the log are no beginning of the present collection

    def _stop(self, error: BookferryError) -> None:
        """Name what is not read of a list with too many gaps, and keep what was read. Raises any other error."""
        if not (self._requests.gave_up and self.facts.records and may_be_of_a_record(error)):
            raise error
        first, last = self._requests.place_of(self._upcoming or self._template), self.facts.last_total
        if self._descent is not None:
            first, last = self._descent.unread
            self._settle(self._descent)
        which = "on" if last is None else f"to {last:,} ({last - first + 1:,} records by X-Total)"
        self.facts.unread.append(
            f"The list was not read from place {first:,} {which}, because too many of its pages cannot be sent. The next backup asks for "
            f"them again. {error}"
        )

    @property
    def _next(self) -> httpx.URL | None:
        """The address of the next page; `None` at the end."""
        if self._descent is None:
            return self._upcoming
        number = self._descent.next_page
        return None if number is None else page_at(self._template, number)

    @property
    def _next_number(self) -> int:
        """Its place in the collection."""
        return (self._descent and self._descent.next_page) or self.facts.pages + 1

    def _note_missing(self) -> None:
        """Note that there is no next page: the list has become shorter, or this is its end."""
        if self._descent is not None:
            self._descent.take_missing(self._next_number)
            self._ahead.leads_to(self._next)
        else:
            self.facts.unsettled |= self._newest is not None and not may_be_last(self._newest.paging)
            self._upcoming = None

    def _goes_on(self, answer: SavedPage) -> bool:
        """Whether the next page is the one that it should be.

        If the second page of a walk down the list disagrees with the first one about the order or the end, the walk goes up instead. On the
        way up, a list without pages has ended where its first page comes again.
        """
        newest, descent = self._newest, self._descent
        if descent is None:
            is_end = newest is not None and is_unpaged(newest.paging, newest.records, answer.records)
            if not is_end or says_more(answer.body):
                return True
            self._upcoming = None
            return False
        has_more = (answer.paging.total or 0) > descent.page_size * self._next_number
        if self.facts.pages > 1 or (descent.fits(answer.ids) and (has_more or answer.paging.next is None)):
            return True
        self._ahead.drop()
        self._descent = None
        self.facts.see(answer.paging.total)
        self.facts.unsettled |= self.facts.totals_seen > 1
        return False

    def _keep(self, answer: SavedPage, *, in_turn: bool = True) -> Page:
        """Make a page that was just read part of the walk and of the log, and look ahead."""
        number = self._next_number
        page = self._take(number, answer, in_turn=in_turn)
        self._append(number, answer, in_turn=in_turn)
        self._look_ahead(answer)
        return page

    def _take(self, number: int, answer: SavedPage, *, in_turn: bool) -> Page:
        paging, descent = answer.paging, self._descent
        if descent is not None:
            lacking = paging.records - len(answer.records)
            descent.take(number, answer.ids, paging.total, in_turn=in_turn, lacking=lacking)
        else:
            self._compare(answer)
            self._upcoming = self._route.after(paging)
            self._guard.check(paging, answer.records, self._upcoming)
        self._newest = answer
        page = Page(number, str(paging.url), answer.records, answer.ids, paging.total)
        self.facts.count(page, answer.gaps)
        self.facts.unsettled |= answer.moved
        self._account()
        if self.facts.pages == 1:
            self._descent = self._way_down(answer)
        return page

    def _compare(self, page: SavedPage) -> None:
        """Note whether the collection changed between two pages that follow each other: X-Total differs, or a record comes again."""
        before = self._newest
        if before is None:
            return
        totals = before.paging.total, page.paging.total
        if None not in totals and totals[0] != totals[1]:
            self.facts.unsettled = True
            self._guard.forget()  # shifted records are no loop
        elif not frozenset(before.keys).isdisjoint(page.keys):
            self.facts.unsettled = True

    def _look_ahead(self, answer: SavedPage) -> None:
        descent, upcoming = self._descent, self._next
        if descent is not None and (self._number > 1 or self.facts.pages == 1):
            return  # an earlier walk may have failed because pages were in flight together
        if not self._ahead.leads_to(upcoming):
            self._route.stop_foreseeing()
        foreseen = self._route.foreseen if descent is None else partial(self._foreseen_down, descent)
        self._ahead.fill(upcoming, foreseen, answer.seconds, len(answer.body), in_turn=descent is not None)

    def _foreseen_down(self, descent: Descent, url: httpx.URL) -> httpx.URL | None:
        following = descent.foreseen(page_number(url) or 1)
        return None if following is None else page_at(self._template, following)

    def _way_down(self, answer: SavedPage) -> Descent | None:
        """Return the way down the list that begins with this page, if it has one."""
        paging = answer.paging
        last = self._route.last_page(self._upcoming)
        if (
            not self._may_go_down
            or answer.gaps
            or last is None
            or page_number(paging.url) != 1
            or not is_counted(paging.url, last)
        ):
            return None
        self._template, number = last, page_number(last) or 1
        return Descent.begin(answer.ids, paging.total, number) if paging.last in (None, number) else None

    def _settle(self, descent: Descent) -> None:
        """Take over the verdict of the walk down the list. In a list without order, X-Total alone decides, as on the way up."""
        self.facts.again += descent.again
        self.is_unsorted = not descent.in_order
        if descent.is_sound and not descent.is_quiet:
            self.facts.follow(descent.added, descent.deleted, descent.end_total, moved=descent.has_moved)
        elif not descent.is_sound and (descent.in_order or descent.total_changed):
            self.facts.unsettled = True

    def _page(self, url: httpx.URL) -> SavedPage | None:
        """Return the next page, in flight or not; `None` if the list ends before it. Gaps are looked for in the order of the walk."""
        try:
            return self._ahead.take(url)
        except UNREADABLE as error:
            return self._requests.around(url, error)

    # ---- the log

    def _replayed(self) -> Iterator[Page]:
        """Yield the pages of the log, each a part of the walk as it was in an earlier process."""
        for checkpoint, answer in self._log.replay(self._endpoints, self._number):
            self.facts.endpoint = checkpoint.endpoint
            self._requests_before, self._seconds_before = checkpoint.requests, checkpoint.seconds
            self.facts.resumed += 1
            self._requests.take(answer)
            if self._descent is not None and self._descent.next_page != checkpoint.number:
                self._descent = None  # the earlier process went up the list
            yield self._take(checkpoint.number, answer, in_turn=checkpoint.in_turn)

    def _append(self, number: int, answer: SavedPage, *, in_turn: bool) -> None:
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

    def _account(self) -> None:
        """Add up requests and seconds, including those of earlier processes."""
        self.facts.requests = self._requests_before + self._client.requests - self._sent
        self.facts.seconds = self._seconds_before + self._client.clock.monotonic() - self._started
