"""Requests single pages of a list, from the first of its endpoints that the service has; a page that cannot be read, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import httpx
from msgspec.structs import replace

from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.http.paging import may_be_last, page_at, page_number
from pipelines.service.listing.gaps import (
    GAP_SIZE,
    MOST_GAPS,
    Gap,
    is_missing,
    may_be_of_a_record,
    may_be_of_the_list,
    part_at,
    part_size,
)
from pipelines.service.listing.page_checkpoint import SavedPage, joined
from pipelines.service.redaction import outside_text
from pipelines.service_limits import PER_PAGE

UNREADABLE = (TemporaryError, RefusedError, ProtocolError, AccessDeniedError)
"""The errors of a page that cannot be read."""

_Parts = dict[int, SavedPage]
"""Smaller pages, by the places of their first records."""

_Refusals = dict[int, BookferryError]
"""What came back for smaller pages that cannot be read, by their places."""


class PageRequests:
    """Requests the pages of one list. `endpoints`: the list's addresses, the best first (service.md#lists)."""

    def __init__(self, client: LibraryClient, endpoints: Sequence[str]) -> None:
        self._client = client
        self._endpoints = endpoints
        self._newest: SavedPage | None = None
        self._total: int | None = None
        """The newest page with records that was read as a whole, and the newest X-Total."""
        self._largest = 0
        """Records of a full page: what is asked for, or fewer if the service sends its own number."""
        self._gaps = 0

    def first(self) -> tuple[str, SavedPage]:
        """Return the endpoint and the first page. Raises the error of the last endpoint if the service has none of them."""
        *better, _last = self._endpoints
        for endpoint in self._endpoints:
            url = httpx.URL(f"{self._client.api_url}/{endpoint}", params={"per_page": PER_PAGE, "page": 1})
            try:
                return endpoint, self._read_first(url)
            except UNREADABLE as error:
                if endpoint in better and not isinstance(error, TemporaryError):
                    continue  # missing, no listing, or not for this account: try the next endpoint
                return endpoint, self._in_parts(url, 1, error)
        raise ValueError("a list without an address")

    def around(self, url: httpx.URL, error: BookferryError) -> SavedPage | None:
        """Return a page that cannot be read, without the records that the service cannot send; `None` if the list ends before it.

        Raises the error if no other page can be read either, if nothing shows that the list has the page, and once `gave_up`.
        """
        number = page_number(url)
        if number is None:
            raise error
        return None if is_missing(error) and self._ended_before(url, number) else self._in_parts(url, number, error)

    @property
    def gave_up(self) -> bool:
        """Whether the list had so many gaps that nothing is read around further ones."""
        return self._gaps >= MOST_GAPS

    def place_of(self, url: httpx.URL) -> int:
        """The place of a page's first record, from 1."""
        return ((page_number(url) or 1) - 1) * (self._largest or PER_PAGE) + 1

    def _read_first(self, url: httpx.URL) -> SavedPage:
        page = self.read(url)
        if self._lacks_records(page):
            with suppress(*UNREADABLE):  # the headers may be wrong, and the list empty
                return self._in_parts(url, 1, _without_records(url))
        return page

    def _ended_before(self, url: httpx.URL, number: int) -> bool:
        """Whether a list without paging headers has ended before a page, or another one has become shorter."""
        newest = self._newest
        if newest is None or page_number(newest.paging.url) != number - 1 or not may_be_last(newest.paging):
            newest = self._try(page_at(url, number - 1)) or self._try(part_at(url, 1, 1))
        if newest is None:
            return False
        paging = newest.paging
        if paging.total is not None:
            return paging.total < self.place_of(url)
        return may_be_last(paging) or (paging.linked and paging.next is None)

    # ---- a page that cannot be read

    def _in_parts(self, url: httpx.URL, number: int, error: BookferryError) -> SavedPage:
        """Return a page that cannot be read as a whole, without what is in the way. Raises the error if that does not help."""
        if self.gave_up or not may_be_of_a_record(error):
            raise error
        heeds_sizes = self._heeds_sizes(url, error)
        if not self._largest:
            self._largest = self._size_by_other_pages(url)
            if self._largest == GAP_SIZE:
                url = part_at(url, 1, GAP_SIZE)
                if (page := self._try(url)) is not None:
                    return page
        size, begin = self._largest, self.place_of(url)
        goes_on = self._total is None and self._try(page_at(url, number + 1)) is not None
        is_named = number == 1 or (self._newest is not None and self._newest.paging.linked)
        if may_be_of_the_list(error) and not (goes_on or is_named or (self._total or 0) >= begin):
            raise error
        parts, failed, step = _Parts(), _Refusals({begin: error}), size
        while heeds_sizes and failed and step > 1:
            # where no part can be read, perhaps each has such a record
            size, step = step, part_size(step) if parts or step == self._largest else 1
            failed = self._divided(url, failed, size, step, parts)
            if self._total is None and not goes_on:  # what is missing behind the last record is no gap
                highest = max(parts, default=0)
                failed = {
                    place: refusal for place, refusal in failed.items() if place < highest or not is_missing(refusal)
                }
        if not parts:
            if self._total is None and not goes_on:
                self._gaps = MOST_GAPS  # where the list ends is unknown
                raise error
            failed, step = {begin: error}, self._largest
        gaps = self._named(url, parts, failed, step)
        self._gaps += len({(place - 1) // GAP_SIZE for gap in gaps for place in range(gap.place, gap.last + 1)})
        return joined(url, parts, gaps, size=self._largest, total=self._total)

    def _heeds_sizes(self, url: httpx.URL, error: BookferryError) -> bool:
        """Whether a page of one record has no more, as far as is seen. Raises the error if no page of the list is sent now.

        Where the service has pages of one size, the first records are its first pages.
        """
        begin = self.place_of(url)
        for place in (2, 1, 3) if begin == 1 else (1, begin - 1):
            if (page := self._try(part_at(url, place, 1))) is not None:
                return len(page.records) == 1
        if self._newest is None or self._try(self._newest.paging.url) is None:
            raise error
        return True

    def _size_by_other_pages(self, url: httpx.URL) -> int:
        """The number of records of a full page, where the first one cannot be read: by the next ones, unless they may be the last.

        A short list is read in pages of `GAP_SIZE`.
        """
        for number in (2, 3):
            if (page := self._try(page_at(url, number))) is not None:
                size, others = len(page.records), (number - 1) * PER_PAGE
                return size if page.paging.next is not None or (self._total or 0) > size + others else GAP_SIZE
        return PER_PAGE

    def _divided(self, url: httpx.URL, failed: Iterable[int], size: int, step: int, parts: _Parts) -> _Refusals:
        """Read the parts of such pages of `size` records into `parts`, of `step` records each. Return those that cannot be read.

        Where the first `GAP_SIZE` cannot be read, the others are not requested.
        """
        refused = _Refusals()
        places = [
            part for place in failed for part in range(place, place + size, step) if part <= (self._total or part)
        ]
        for place in places:
            if not parts and len(refused) == GAP_SIZE:
                return dict.fromkeys(places, refused[places[0]])
            try:
                parts[place] = self.read(part_at(url, place, step), briefly=True)
            except UNREADABLE as refusal:
                refused[place] = refusal
        return refused

    def _named(self, url: httpx.URL, parts: _Parts, failed: _Refusals, step: int) -> list[Gap]:
        """The gaps of a page that was read in parts; `failed`: what cannot be read, of `step` records each."""
        ids = {place + offset: record_id for place, part in parts.items() for offset, record_id in enumerate(part.ids)}

        def id_at(place: int) -> int | None:
            if place in ids or not 0 < place <= (self._total or place):
                return ids.get(place)
            page, offset = self._try(part_at(url, place, step)), (place - 1) % step
            return page.ids[offset] if page is not None and offset < len(page.ids) else None

        gaps = list[Gap]()
        for place, refusal in failed.items():
            gap = Gap(place, place, None, None, str(refusal))
            if gaps and gaps[-1].last == place - 1:
                gap = gaps.pop()
            gaps.append(replace(gap, last=min(place + step - 1, self._total or place + step - 1)))
        return [replace(gap, before=id_at(gap.place - 1), after=id_at(gap.last + 1)) for gap in gaps]

    def _try(self, url: httpx.URL) -> SavedPage | None:
        try:
            return self.read(url, briefly=True)
        except UNREADABLE:
            return None

    def read(self, url: httpx.URL, *, briefly: bool = False) -> SavedPage:
        """Return one page; `briefly`: a part of it, or a page beside it, with records. Raises the errors of `UNREADABLE`, and 401."""
        page = SavedPage.read(self._client.get(url, briefly=briefly))
        self._note_total(page)
        if not page.records and (briefly or (self._largest and self._lacks_records(page))):
            raise _without_records(url)
        if not briefly:
            self.take(page)
        return page

    def take(self, page: SavedPage) -> None:
        """Note a page that was read as a whole, or in an earlier process."""
        self._newest, self._largest = page if page.records else self._newest, max(self._largest, page.paging.records)
        self._note_total(page)

    def _note_total(self, page: SavedPage) -> None:
        if page.paging.total is not None:
            self._total = page.paging.total

    def _lacks_records(self, page: SavedPage) -> bool:
        """Whether a page has none although X-Total or its own Link says that it should have some."""
        is_within = (
            page.paging.next is not None if self._total is None else self.place_of(page.paging.url) <= self._total
        )
        return not page.records and is_within


def _without_records(url: httpx.URL) -> RefusedError:
    return RefusedError(f"GET {outside_text(url)} answered without records.", status=httpx.codes.NOT_FOUND)
