"""Reads one resource page by page, ahead and in order, and collects the figures that prove the listing complete (I4).

An interrupted walk resumes from the pages in its log (I9). If the collection changes during the walk, the walk reads the affected pages
again until they fit together.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress

import httpx
import msgspec

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError
from pipelines.service.client import LibraryClient
from pipelines.service.http.paging import LoopGuard, Route, is_unpaged, may_be_last, same_page
from pipelines.service.listing.drift import Drift, RecentPages, RememberedPage
from pipelines.service.listing.listing_facts import ListingFacts, Page
from pipelines.service.listing.page_checkpoint import NoCheckpoints, PageCheckpoint, PageCheckpoints, SavedPage
from pipelines.service.listing.prefetch import Prefetch
from pipelines.service.redaction import outside_text
from pipelines.service_limits import PER_PAGE

RESTART_PAGES = 40
"""Pages: a shorter walk starts again when the collection changes. A longer walk goes back to where it changed."""

PAGES_PER_MOVEMENT = 50
"""Pages for the square of the changes that a walk may settle by going back.

If a record is added and another one deleted between the same two requests, the change shows only as long as nothing else changes. With one
change in 50 pages, two in 200 or 20 in 20,000, at most one walk in 200 has such a pair."""


class CollectionMovedError(Exception):
    """The collection changed in an unknown place: a new walk from the first page is needed."""


class _PageGoneError(Exception):
    """The next page does not exist."""

    def __init__(self, refusal: RefusedError) -> None:
        self.refusal = refusal


class Listing:
    """One walk over a resource. Iterate `pages()` once; `facts` is complete when the iteration ended.

    `endpoints` are tried in order, and the walk uses the first one that the service has (service.md#lists). `may_go_back`: the walk may
    read pages again where the collection changed. `may_restart`: a walk that cannot determine the change raises `CollectionMovedError`, so
    that a new walk can start. `last_page`: the last page's address, if an earlier walk found it.
    """

    def __init__(
        self,
        client: LibraryClient,
        endpoints: Sequence[str],
        *,
        log: PageCheckpoints | None = None,
        may_restart: bool = False,
        may_go_back: bool = False,
        last_page: httpx.URL | None = None,
    ) -> None:
        self._client = client
        self._endpoints = endpoints
        self._log = log or NoCheckpoints()
        self._may_restart, self._may_go_back = may_restart, may_go_back
        self.last_page = last_page
        self._route, self._guard, self._recent = Route(), LoopGuard(), RecentPages()
        self._ahead = Prefetch(self._fetch, client.requests_per_minute)
        self._early: SavedPage | None = None
        self._upcoming: httpx.URL | None = None
        self._furthest = 0
        self._started, self._sent = client.clock.monotonic(), client.requests
        self._before = PageCheckpoint(0, "", "")
        self.facts = ListingFacts()

    def pages(self) -> Iterator[Page]:
        """Yield the pages in order; a page that is read again comes again.

        Raises `PagingLoopError` if the listing repeats itself or goes on without end, and `CollectionMovedError` if only another walk can
        find out what the collection contains.
        """
        self._started, self._sent = self._client.clock.monotonic(), self._client.requests
        with self._ahead:
            yield from self._walk()
            self._account()

    # ---- the walk

    def _walk(self) -> Generator[Page, None, None]:
        answer: SavedPage | None = yield from self._begin()
        while answer is not None and self._upcoming is not None:
            answer = yield from self._go_on(answer, self._upcoming)

    def _begin(self) -> Generator[Page, None, SavedPage]:
        """Yield the first page; or the pages of the log, whose last page must be unchanged."""
        answer = yield from self._replayed()
        if answer is None:
            if (guessed := self.last_page) is not None:
                self._read_early(guessed)
            answer = self._first()
            page = self._keep(1, answer)
            last = self._route.last_page(answer.paging, self._upcoming) if answer.oldest_first else None
            if last is not None and not self._is_early(last):
                if guessed is not None:
                    self._give_up(answer)  # the end has moved since the earlier walk
                self._read_early(last)
            self._look_ahead(answer)
            yield page
        elif self._upcoming is not None:
            newest = self._now(self._recent.newest)
            if newest is None or not self._recent.is_unchanged(newest.keys, newest.paging.total):
                self._may_restart = True  # the pages of the log are no beginning of the present collection
                if (back := self._moved(newest)) is not None:
                    return (yield from back)
        return answer

    def _go_on(self, answer: SavedPage, upcoming: httpx.URL) -> Generator[Page, None, SavedPage | None]:
        """Yield the page after the newest one, or pages before it if the collection changed; return `None` at the end."""
        if (total := self._moved_early()) is not None and (back := self._moved(answer)) is not None:
            self.facts.see(total)
            return (yield from back)
        try:
            following = self._following(answer, upcoming)
        except _PageGoneError as gone:
            newest = self._now(self._recent.newest)
            same = newest is not None and newest.paging.total == self._recent.newest.total
            if same or (back := self._moved(newest)) is None:
                raise gone.refusal from None
            return (yield from back)
        if following is None:
            return None
        seam = self._recent.drift(following.keys, following.paging.total)
        if seam is Drift.COUNT_CHANGED and (back := self._moved(following)) is not None:
            return (yield from back)
        if seam is Drift.OVERLAP:
            self._give_up(following)
        yield self._take(self._recent.newest.number + 1, following)
        return following

    def _take(self, number: int, answer: SavedPage) -> Page:
        """Make a page part of the walk, and prefetch the pages after it."""
        page = self._keep(number, answer)
        self._look_ahead(answer)
        return page

    def _keep(self, number: int, answer: SavedPage) -> Page:
        page = self._accept(number, answer)
        self._append(number, answer)
        return page

    def _look_ahead(self, answer: SavedPage) -> None:
        early = None if self._early is None else self._early.paging.url
        self._ahead.fill(self._route, self._upcoming, answer.seconds, len(answer.body), stop_at=early)

    def _read_early(self, last: httpx.URL) -> None:
        """Read the last page of a list that grows at its end before the pages between.

        If as many records were deleted as added, X-Total does not change, but by then the pages have shifted into the last one.
        """
        self._early, self.last_page = None, last
        if self._upcoming is None or not same_page(last, self._upcoming):
            with suppress(RefusedError, ProtocolError):  # announced, but not there
                self._early = self._fetch(last)
                self._append(0, self._early, early=True)

    def _is_early(self, url: httpx.URL) -> bool:
        return self._early is not None and same_page(self._early.paging.url, url)

    def _moved_early(self) -> int | None:
        """Return X-Total of the page that was read early, if it differs from the newest page's."""
        early, total = self._early, self._recent.newest.total
        if early is None or None in (early.paging.total, total) or early.paging.total == total:
            return None
        self._early = None
        return early.paging.total

    def _accept(self, number: int, answer: SavedPage) -> Page:
        paging = answer.paging
        self._recent.add(RememberedPage(number, paging.url, paging.total, frozenset(answer.keys), self._route.seen))
        self._upcoming = self._route.after(paging)
        self._guard.check(paging, answer.records, self._upcoming)
        page = Page(number, str(paging.url), answer.records, answer.ids, paging.total)
        self.facts.contradiction = self.facts.contradiction or paging.contradiction
        self.facts.again += number <= self._furthest
        self._furthest = max(self._furthest, number)
        self.facts.count(page)
        self._account()
        return page

    def _following(self, answer: SavedPage, upcoming: httpx.URL) -> SavedPage | None:
        """Return the next page; `None` if a service without paging headers has returned the last one."""
        try:
            following = self._next(upcoming)
        except RefusedError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            if may_be_last(answer.paging):
                return None
            raise _PageGoneError(error) from None
        return None if is_unpaged(answer.paging, answer.records, following.records) else following

    def _next(self, upcoming: httpx.URL) -> SavedPage:
        """Return the next page: the one that was read early, if nothing has changed since."""
        early = self._early
        if early is not None and self._is_early(upcoming):
            self._ahead.drop()
            self._early = None
            if early.paging.total == self._recent.newest.total:
                return early
        return self._ahead.take(upcoming)

    # ---- walking back

    def _moved(self, hint: SavedPage | None) -> Generator[Page, None, SavedPage] | None:
        """Return the way back to where X-Total changed; `None` if the walk just goes on and proves nothing any more.

        `hint`: a page as it is now.
        """
        moves = self.facts.movements + 1
        if (
            self._may_go_back
            and self._furthest > RESTART_PAGES
            and moves * moves * PAGES_PER_MOVEMENT <= self._furthest + PAGES_PER_MOVEMENT
        ):
            self.facts.movements = moves
            return self._back(hint)
        self._give_up(hint)
        self._guard.back_to(self._route.seen)  # shifted records are no loop
        return None

    def _give_up(self, hint: SavedPage | None) -> None:
        """Ask for a new walk if that is allowed."""
        if hint is not None and self.last_page is not None:
            self.last_page = self._route.last_page(hint.paging, self._upcoming) or self.last_page
        if self._may_restart:
            raise CollectionMovedError
        self.facts.unsettled = True

    def _now(self, seen: RememberedPage) -> SavedPage | None:
        """Read a page again; `None` if it does not exist any more."""
        try:
            return self._fetch(seen.url)
        except RefusedError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def _back(self, hint: SavedPage | None) -> Generator[Page, None, SavedPage]:
        """Walk back to a page that overlaps with the pages before the change; from there the walk goes on.

        Records keep their order, so nothing is lost between two overlapping pages. `hint`: a page as it is now, which says where the
        collection ends now. The last page is read first, so that it shows later changes.
        """
        self._ahead.drop()
        pages = self._recent.newest_first()
        last = None
        if hint is not None and self.last_page is not None:
            last = self._route.last_page(hint.paging, self._upcoming)
        if last is not None:
            self._read_early(last)
        for seen in pages:
            now = self._now(seen)
            if (
                now is not None
                and seen is pages[0]
                and now.paging.total == seen.total
                and not self._recent.is_unchanged(now.keys, seen.total)
            ):
                break  # as many records were added as deleted
            if now is not None and (seen.number == 1 or self._recent.overlaps(now.keys)):
                self._go_back(seen.before)
                yield self._take(seen.number, now)
                return now
            self.facts.again += 1
        raise CollectionMovedError

    def _go_back(self, before: int) -> None:
        self._route.back_to(before)
        self._guard.back_to(before)

    # ---- single pages

    def _first(self) -> SavedPage:
        missing: Exception | None = None
        for endpoint in self._endpoints:
            url = httpx.URL(f"{self._client.api_url}/{endpoint}", params={"per_page": PER_PAGE, "page": 1})
            try:
                answer = self._fetch(url)
            except (RefusedError, ProtocolError, AccessDeniedError) as error:
                missing = error  # missing, no listing, or not for this account: try the next endpoint
            else:
                self.facts.endpoint = endpoint
                return answer
        assert missing is not None  # noqa: S101  endpoints is never empty
        raise missing

    def _fetch(self, url: httpx.URL) -> SavedPage:
        response = self._client.get(url)
        try:
            return SavedPage.read(response, url)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ProtocolError(
                f"GET {outside_text(url)} answered something that is not a listing ({outside_text(error)}); expected an array, or an "
                "object with `records` or one other array of objects."
            ) from None

    # ---- the log

    def _replayed(self) -> Generator[Page, None, SavedPage | None]:
        """Yield the pages of the log; return the last one."""
        answer = None
        for checkpoint, found in (PageCheckpoint.decode(*entry) for entry in self._log.replay()):
            self.facts.endpoint, self._before = checkpoint.endpoint, checkpoint
            if checkpoint.early:
                self._early = found
                continue
            if checkpoint.number <= self._furthest:
                self._go_back(checkpoint.before)
            self.facts.resumed += 1
            answer = found
            yield self._accept(checkpoint.number, answer)
        return answer

    def _append(self, number: int, answer: SavedPage, *, early: bool = False) -> None:
        before = 0 if early else self._recent.newest.before
        requests, seconds = self.facts.requests, self.facts.seconds
        mark = PageCheckpoint(
            number, self.facts.endpoint, "", early=early, before=before, requests=requests, seconds=seconds
        ).encode(answer.paging)
        self._log.append(mark, answer.body)

    def _account(self) -> None:
        """Add up requests and seconds, including those of earlier processes."""
        self.facts.requests = self._before.requests + self._client.requests - self._sent
        self.facts.seconds = self._before.seconds + self._client.clock.monotonic() - self._started
