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

    def _walk(self) -> Generator[Page, None, None]:
        answer: SavedPage | None = yield from self._begin()
        if self._descent is not None and (yield from self._descend(self._descent)):
            return
        while answer is not None and self._upcoming is not None:
            answer = yield from self._go_on(answer, self._upcoming)

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

    def _begin(self) -> Generator[Page, None, SavedPage]:
        """Yield the first page; or the pages of the log, whose last page must be unchanged unless the walk goes down the list."""
        answer = yield from self._replayed()
        if answer is None:
            self.facts.endpoint, answer = self._requests.first()
            yield self._keep(1, answer)
            if self._descent is None:
                self._look_ahead(answer)
        elif self._descent is None and self._upcoming is not None:
            newest = self._page(answer.paging.url)
            if newest is None or (newest.keys, newest.paging.total) != (answer.keys, answer.paging.total):
                self.facts.unsettled = True  # the pages of the log are no beginning of the present collection
        return answer

    # ---- down a list, from its newest record to its oldest

    def _descend(self, descent: Descent) -> Generator[Page, None, bool]:
        """Yield the pages of a walk down the list. Returns False if its second page has another order than the first one promised."""
        while (number := descent.next_page) is not None:
            url = page_at(self._template, number)
            in_turn = not self._ahead.has(url)
            answer = self._page(url)
            if answer is None:
                descent.take_missing(number)
                continue
            if self.facts.pages == 1 and not self._goes_down(descent, number, answer):
                self._ahead.drop()
                self._descent = None
                self.facts.see(answer.paging.total)
                self.facts.unsettled |= self.facts.totals_seen > 1
                return False
            page = self._accept_down(descent, number, answer, in_turn=in_turn)
            self._append(number, answer, in_turn=in_turn)
            self._look_ahead_down(descent, answer)
            yield page
        self._settle(descent)
        return True

    def _goes_down(self, descent: Descent, number: int, answer: SavedPage) -> bool:
        """Whether the second page of the walk agrees with the first one about the order and the end of the list."""
        goes_on = (answer.paging.total or 0) > descent.page_size * number
        return descent.fits(answer.ids) and (goes_on or answer.paging.next is None)

    def _accept_down(self, descent: Descent, number: int, answer: SavedPage, *, in_turn: bool) -> Page:
        lacking = answer.paging.records - len(answer.records)
        descent.take(number, answer.ids, answer.paging.total, in_turn=in_turn, lacking=lacking)
        return self._count(number, answer)

    def _look_ahead_down(self, descent: Descent, answer: SavedPage) -> None:
        number = descent.next_page

        def foreseen(url: httpx.URL) -> httpx.URL | None:
            following = descent.foreseen(page_number(url) or 1)
            return None if following is None else page_at(self._template, following)

        upcoming = None if number is None else page_at(self._template, number)
        if self._number == 1:  # an earlier walk may have failed because pages were in flight together
            self._ahead.leads_to(upcoming)
            self._ahead.fill(upcoming, foreseen, answer.seconds, len(answer.body), in_turn=True)

    def _settle(self, descent: Descent) -> None:
        """Take over the verdict of the walk down the list. In a list without order, X-Total alone decides, as on the way up."""
        self.facts.again += descent.again
        self.is_unsorted = not descent.in_order
        if descent.is_sound and not descent.is_quiet:
            self.facts.follow(descent.added, descent.deleted, descent.end_total, moved=descent.has_moved)
        elif not descent.is_sound and (descent.in_order or descent.total_changed):
            self.facts.unsettled = True

    # ---- from the first page to the last

    def _go_on(self, answer: SavedPage, upcoming: httpx.URL) -> Generator[Page, None, SavedPage | None]:
        """Yield the page after this one; return `None` at the end."""
        following = self._page(upcoming)
        if following is None:
            self.facts.unsettled |= not may_be_last(answer.paging)  # the list has become shorter
        elif says_more(answer.body) or not is_unpaged(answer.paging, answer.records, following.records):
            page = self._keep(self.facts.pages + 1, following)
            self._look_ahead(following)
            yield page
            return following
        return None

    def _compare(self, before: SavedPage, page: SavedPage) -> None:
        """Note whether the collection changed between two pages that follow each other: X-Total differs, or a record comes again."""
        totals = before.paging.total, page.paging.total
        if None not in totals and totals[0] != totals[1]:
            self.facts.unsettled = True
            self._guard.forget()  # shifted records are no loop
        elif not frozenset(before.keys).isdisjoint(page.keys):
            self.facts.unsettled = True

    def _keep(self, number: int, answer: SavedPage) -> Page:
        page = self._accept(number, answer)
        self._append(number, answer)
        return page

    def _look_ahead(self, answer: SavedPage) -> None:
        if not self._ahead.leads_to(self._upcoming):
            self._route.stop_foreseeing()
        self._ahead.fill(self._upcoming, self._route.foreseen, answer.seconds, len(answer.body))

    def _accept(self, number: int, answer: SavedPage) -> Page:
        paging = answer.paging
        if self._newest is not None:
            self._compare(self._newest, answer)
        self._newest = answer
        self._upcoming = self._route.after(paging)
        self._guard.check(paging, answer.records, self._upcoming)
        page = self._count(number, answer)
        if self.facts.pages == 1:
            self._descent = self._way_down(answer)
        return page

    def _count(self, number: int, answer: SavedPage) -> Page:
        page = Page(number, str(answer.paging.url), answer.records, answer.ids, answer.paging.total)
        self.facts.count(page, answer.gaps)
        self.facts.unsettled |= answer.moved
        self._account()
        return page

    def _way_down(self, answer: SavedPage) -> Descent | None:
        """Return the way down the list that begins with this page, if it has one."""
        paging = answer.paging
        last = self._route.last_page(paging, self._upcoming)
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

    def _page(self, url: httpx.URL) -> SavedPage | None:
        """Return the next page, in flight or not; `None` if the list ends before it. Gaps are looked for in the order of the walk."""
        try:
            return self._ahead.take(url)
        except UNREADABLE as error:
            return self._requests.around(url, error)

    # ---- the log

    def _replayed(self) -> Generator[Page, None, SavedPage | None]:
        """Yield the pages of the log; return the last one of this walk."""
        answer = None
        for checkpoint, page in self._log.replay(self._endpoints, self._number):
            self.facts.endpoint = checkpoint.endpoint
            self._requests_before, self._seconds_before = checkpoint.requests, checkpoint.seconds
            self.facts.resumed += 1
            answer = page
            self._requests.take(answer)
            yield self._accept_again(checkpoint, answer)
        return answer

    def _accept_again(self, checkpoint: PageCheckpoint, answer: SavedPage) -> Page:
        """Make a page of the log part of the walk, as it was part of it in an earlier process."""
        descent = self._descent
        if descent is not None and descent.next_page == checkpoint.number:
            return self._accept_down(descent, checkpoint.number, answer, in_turn=checkpoint.in_turn)
        self._descent = None  # the earlier process went up the list
        return self._accept(checkpoint.number, answer)

    def _append(self, number: int, answer: SavedPage, *, in_turn: bool = True) -> None:
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
