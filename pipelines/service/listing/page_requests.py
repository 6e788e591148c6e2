"""Requests single pages of a list, from the first of its endpoints that the service has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import httpx
import msgspec
from msgspec.structs import replace

from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.http.paging import may_be_last, page_at, page_number
from pipelines.service.listing.gaps import (
    GAP_SIZE,
    HALVES,
    MOST_GAPS,
    Gap,
    is_missing,
    may_be_of_a_record,
    may_be_of_the_list,
    part_at,
    part_sizes,
)
from pipelines.service.listing.page_checkpoint import SavedPage, joined
from pipelines.service.redaction import outside_text
from pipelines.service_limits import DEFAULT_PER_PAGE, PER_PAGE

UNREADABLE = (TemporaryError, RefusedError, ProtocolError, AccessDeniedError)
"""The errors of a page that cannot be read."""


class PageRequests:
    """Requests the pages of one list. `endpoints`: the list's addresses, the best first (service.md#lists)."""

    def __init__(self, client: LibraryClient, endpoints: Sequence[str]) -> None:
        self._client = client
        self._endpoints = endpoints
        self._newest: SavedPage | None = None
        self._total: int | None = None
        """The newest page that was read as a whole, and the newest X-Total."""
        self._totals = set[int]()
        """Every X-Total since a page could not be read."""
        self._largest = 0
        self._gaps = 0

    def first(self) -> tuple[str, SavedPage]:
        """Return the endpoint and the first page. Raises the error of the last endpoint if the service has none of them."""
        *better, _last = self._endpoints
        for endpoint in self._endpoints:
            url = self._first_page(endpoint)
            try:
                return endpoint, self._read_first(url)
            except UNREADABLE as error:
                if endpoint in better and not isinstance(error, TemporaryError):
                    continue  # missing, no listing, or not for this account: try the next endpoint
                return endpoint, self._around(self._unreadable(url), error)
        raise ValueError("a list without an address")

    def around(self, url: httpx.URL, error: BookferryError) -> SavedPage | None:
        """Return a page that cannot be read, without the records that the service cannot send; `None` if the list ends before it.

        Raises the error if no other page can be read either, if nothing shows that the list has the page, and once `gave_up`.
        """
        page = self._unreadable(url)
        return None if is_missing(error) and self._ended_before(page) else self._around(page, error)

    @property
    def gave_up(self) -> bool:
        """Whether the list had so many gaps that nothing is read around further ones."""
        return self._gaps >= MOST_GAPS

    def place_of(self, url: httpx.URL) -> int:
        """The place of a page's first record, from 1."""
        return ((page_number(url) or 1) - 1) * self.page_size + 1

    @property
    def page_size(self) -> int:
        """Records of a full page: what is asked for, or fewer if the service sends its own number."""
        return self._largest or PER_PAGE

    def _first_page(self, endpoint: str) -> httpx.URL:
        return httpx.URL(f"{self._client.api_url}/{endpoint}", params={"per_page": PER_PAGE, "page": 1})

    def _read_first(self, url: httpx.URL) -> SavedPage:
        page = self.read(url)
        if self._lacks_records(page):
            with suppress(*UNREADABLE):  # the headers may be wrong, and the list empty
                page, self._newest = self._around(self._unreadable(url), _without_records(url)), None
        return page

    def _unreadable(self, url: httpx.URL) -> _UnreadablePage:
        self._totals = set() if self._total is None else {self._total}
        known_urls = [] if self._newest is None or not self._newest.records else [self._newest.paging.url]
        return _UnreadablePage(self.read, url, self.page_size, known_urls)

    def _ended_before(self, page: _UnreadablePage) -> bool:
        """Whether a list without paging headers has ended before a page, or another one has become shorter."""
        newest = self._newest
        if newest is None or page_number(newest.paging.url) != page.number - 1 or not may_be_last(newest.paging):
            newest = page.before
        if newest is not None and may_be_last(newest.paging):
            return True
        saved_page = newest or page.elsewhere
        if saved_page is None or saved_page.paging.total is None:
            return saved_page is not None and saved_page.paging.linked and saved_page.paging.next is None
        return saved_page.paging.total < page.begin

    def _around(self, page: _UnreadablePage, error: BookferryError) -> SavedPage:
        """Return a page that cannot be read as a whole, without what is in the way. Raises the error if that does not help."""
        if self.gave_up or page_number(page.url) is None or not may_be_of_a_record(error):
            raise error
        if may_be_of_the_list(error) and (self._total or 0) < page.begin and not page.is_announced:
            raise error
        if not self._largest:
            self._learn_size(page)
        parts, failed, size = self._in_parts(page, error)
        if not parts and not page.is_served:
            raise error
        if parts:
            self._largest = self._largest or page.size
        self._gaps += len({at // GAP_SIZE for place in failed for at in range(place - 1, place - 1 + size)})
        if not parts and self._total is None and page.behind is None:
            self._gaps = MOST_GAPS  # where the list ends is unknown
            raise error
        ids, gaps = _ids_by_place(parts or page.beside), list[Gap]()
        for place, refusal in failed.items():
            last = min(place + size - 1, self._total or place + size - 1)
            first = gaps.pop() if gaps and gaps[-1].last == place - 1 else Gap(place, last, None, None, str(refusal))
            gaps.append(replace(first, last=last))
        gaps = [
            replace(gap, before=page.id_at(gap.place - 1, ids), after=page.id_at(gap.last + 1, ids)) for gap in gaps
        ]
        moved = len(self._totals) > 1
        return joined(page.url, parts, gaps, size=self.page_size, total=self._total, moved=moved)

    def _learn_size(self, page: _UnreadablePage) -> None:
        """Take the number of records of a full page from another page, where none was read yet."""
        if (nearest := page.nearest) is None:
            return
        number, other = nearest
        paging, size = other.paging, len(other.records)
        if number > page.number and paging.next is None:  # perhaps the last one, with fewer records
            full = PER_PAGE if paging.total is None else (paging.total - size) // (number - 1)
            if full != size and full <= PER_PAGE:
                first = page.single(full * (number - 1) + 1)
                is_last = size != DEFAULT_PER_PAGE and paging.total is not None
                is_last = is_last and (paging.linked or page.ends_before(number + 1))
                size = full if (is_last if first is None else first == other.ids[0]) else size
        page.size = self._largest = size if GAP_SIZE <= size <= PER_PAGE else PER_PAGE

    def _in_parts(
        self, page: _UnreadablePage, error: BookferryError
    ) -> tuple[dict[int, SavedPage], dict[int, BookferryError], int]:
        """Return smaller pages by their places, and the places and the size of those that cannot be read.

        Of the smallest size that the service sends.
        """
        parts, failed, size = dict[int, SavedPage](), {page.begin: error}, self.page_size
        lacking, steps = (failed, size), part_sizes(size)
        while steps:
            step = steps.pop(0)
            places = [
                part for place in failed for part in range(place, place + size, step) if part <= (self._total or part)
            ]
            read, refused = self._parts_of(page, places, step, error)
            if not read and not (parts or page.is_served):
                break
            if not read and len(places) > HALVES:
                if not steps and step > 1 and page.has_singles:
                    steps = [1]  # each page of this size has such a record
                continue  # no page of this size is served
            parts |= read
            highest, behind = max(parts, default=0), self._total is None and page.behind is not None
            failed = {
                place: refusal
                for place, refusal in refused.items()
                if place <= (self._total or place)
                and (self._total or behind or place < highest or not is_missing(refusal))
            }
            size, steps = step, part_sizes(step)
            lacking = (failed, size) if read else lacking
        may_pass = [place for place, refusal in failed.items() if parts and isinstance(refusal, TemporaryError)]
        read, _ = self._parts_of(page, may_pass, size, error)
        if read:
            lacking = {place: refusal for place, refusal in failed.items() if place not in read}, size
        return parts | read, *lacking

    def _parts_of(
        self, page: _UnreadablePage, places: Sequence[int], step: int, error: BookferryError
    ) -> tuple[dict[int, SavedPage], dict[int, BookferryError]]:
        """Return the smaller pages at these places, and what came back for those that cannot be read: all, if the size is not heeded.

        Where the first `GAP_SIZE` cannot be read, the others are not requested.
        """
        parts, failed = dict[int, SavedPage](), dict[int, BookferryError]()
        for place in places:
            if not parts and len(failed) == GAP_SIZE:
                return {}, dict.fromkeys(places, failed[places[0]])
            try:
                part = self.read(part_at(page.url, place, step), briefly=True)
            except UNREADABLE as refusal:
                failed[place] = refusal
                continue
            fewest = min(step, self._total - place + 1) if self._total is not None else 1
            if not fewest <= len(part.records) <= step:
                return {}, dict.fromkeys(places, error)
            parts[place] = part
        return parts, failed

    def read(self, url: httpx.URL, *, briefly: bool = False) -> SavedPage:
        """Return one page; `briefly`: a part of it, or a page beside it, with records. Raises the errors of `UNREADABLE`, and 401."""
        response = self._client.get(url, briefly=briefly)
        try:
            page = SavedPage.read(response)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ProtocolError(
                f"GET {outside_text(url)} answered something that is not a listing ({outside_text(error)}); expected an array, or an "
                "object with `records` or one other array of objects."
            ) from None
        self._note_total(page)
        if not page.records and (briefly or (self._largest and self._lacks_records(page))):
            raise _without_records(url)
        if not briefly:
            self.take(page)
        return page

    def take(self, page: SavedPage) -> None:
        """Note a page that was read as a whole, or in an earlier process."""
        self._newest, self._largest = page, max(self._largest, page.paging.records)
        self._note_total(page)

    def _note_total(self, page: SavedPage) -> None:
        if page.paging.total is not None:
            self._total = page.paging.total
            self._totals.add(page.paging.total)

    def _lacks_records(self, page: SavedPage) -> bool:
        """Whether a page has none although X-Total or its own Link says that it should have some."""
        is_within = (
            page.paging.next is not None if self._total is None else self.place_of(page.paging.url) <= self._total
        )
        return not page.records and is_within


def _without_records(url: httpx.URL) -> RefusedError:
    return RefusedError(f"GET {outside_text(url)} answered without records.", status=httpx.codes.NOT_FOUND)


def _ids_by_place(pages: Mapping[int, SavedPage]) -> dict[int, int | None]:
    """The ids of pages that begin at these places, by their own places."""
    return {begin + offset: record_id for begin, page in pages.items() for offset, record_id in enumerate(page.ids)}


class _UnreadablePage:
    """A page that cannot be read, and the pages beside it: each is requested once, and only if it is needed."""

    def __init__(
        self, read: Callable[..., SavedPage], url: httpx.URL, size: int, known_urls: Sequence[httpx.URL]
    ) -> None:
        """`size`: records of a full page, as far as is known; `known_urls`: that of the page that was read last."""
        self._read, self._known = read, known_urls
        self._others = dict[int, SavedPage | None]()
        self._missing = set[httpx.URL]()
        self.url, self.number = url, page_number(url) or 1
        self.size = size

    @property
    def begin(self) -> int:
        """The place of its first record, from 1."""
        return (self.number - 1) * self.size + 1

    @property
    def before(self) -> SavedPage | None:
        """The page before it, if it can be read."""
        return self.other(self.number - 1)

    @property
    def behind(self) -> SavedPage | None:
        """The page behind it, if it can be read."""
        return self.other(self.number + 1)

    @cached_property
    def elsewhere(self) -> SavedPage | None:
        """A page of one record, or the one that was read last, if one of them can be read now.

        Where the service has pages of one size, the first records are its first pages.
        """
        places = (1, 2, 3) if self.number == 1 else (1, self.begin - 1)
        urls = [*(part_at(self.url, place, 1) for place in places), *self._known]
        return next(filter(None, map(self._try, urls)), None)

    @property
    def nearest(self) -> tuple[int, SavedPage] | None:
        """The number of a whole page near this one that can be read, and the page."""
        numbers = (self.number - 1, self.number + 1, self.number + 2)
        return next(((number, page) for number in numbers if (page := self.other(number)) is not None), None)

    @property
    def beside(self) -> dict[int, SavedPage]:
        """The pages before and behind it, by their places."""
        pages = {self.begin - self.size: self.before, self.begin + self.size: self.behind}
        return {place: page for place, page in pages.items() if page is not None}

    @property
    def is_announced(self) -> bool:
        """Whether the page before it names it, or pages behind it can be read."""
        named = self.before is not None and self.before.paging.next is not None
        return named or self.behind is not None or (self.number == 1 and self.elsewhere is not None)

    @property
    def is_served(self) -> bool:
        """Whether other pages of the list can be read."""
        return bool(self.beside or self.elsewhere)

    @property
    def has_singles(self) -> bool:
        """Whether the service sends a single record of the list as a page."""
        return self.elsewhere is not None and len(self.elsewhere.records) == 1

    def id_at(self, place: int, ids: Mapping[int, int | None]) -> int | None:
        """The id of a record: one of these by their places, or one before or behind the page; `None` if it cannot be read."""
        if place in ids or place < 1 or self.begin <= place < self.begin + self.size:
            return ids.get(place)
        single = self.single(place)
        return _ids_by_place(self.beside).get(place) if single is None else single

    def single(self, place: int) -> int | None:
        """The id of the record at a place, if the service sends it as a page."""
        page = self._try(part_at(self.url, place, 1))
        return page.ids[0] if page is not None and len(page.ids) == 1 else None

    def other(self, number: int) -> SavedPage | None:
        """A whole page, if it can be read; there is none before the first one."""
        if number and number not in self._others:
            self._others[number] = self._try(page_at(self.url, number))
        return self._others.get(number)

    def ends_before(self, number: int) -> bool:
        """Whether the service says that it has no such page."""
        return self.other(number) is None and page_at(self.url, number) in self._missing

    def _try(self, url: httpx.URL) -> SavedPage | None:
        try:
            return self._read(url, briefly=True)
        except UNREADABLE as error:
            self._missing |= {url} if is_missing(error) else set()
            return None
