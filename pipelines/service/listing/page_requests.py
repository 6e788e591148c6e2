"""Requests single pages of a list, from the first of its endpoints that the service has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import httpx
import msgspec

from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.http.paging import may_be_last, page_at, page_number
from pipelines.service.listing.gaps import (
    MOST_GAPS,
    gaps_of,
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


class PageRequests:
    """Requests the pages of one list. `endpoints`: the list's addresses, the best first (service.md#lists)."""

    def __init__(self, client: LibraryClient, endpoints: Sequence[str]) -> None:
        self._client = client
        self._endpoints = endpoints
        self._newest: SavedPage | None = None
        self._total: int | None = None
        """The newest page that was read as a whole and has records, and the newest X-Total."""
        self._size = 0
        """Records of a full page; 0 until one was read."""
        self._gaps = 0
        """Parts of pages that could not be read as a whole."""

    def first(self) -> tuple[str, SavedPage]:
        """Return the endpoint and the first page. Raises the error of the last endpoint if the service has none of them."""
        *better, _last = self._endpoints
        for endpoint in self._endpoints:
            url = httpx.URL(f"{self._client.api_url}/{endpoint}", params={"per_page": PER_PAGE, "page": 1})
            try:
                page = self.read(url)
            except UNREADABLE as error:
                if endpoint in better and not isinstance(error, TemporaryError):
                    continue  # missing, no listing, or not for this account: try the next endpoint
                return endpoint, self._around(url, error)
            if self._lacks_records(page):
                with suppress(*UNREADABLE):  # the headers may be wrong, and the list empty
                    page = self._around(url, _without_records(url))
            return endpoint, page
        raise ValueError("a list without an address")

    def around(self, url: httpx.URL, error: BookferryError) -> SavedPage | None:
        """Return a page that cannot be read, without the records that the service cannot send; `None` if the list ends before it.

        Raises the error if no other page can be read either, if nothing shows that the list has the page, and once `gave_up`.
        """
        return None if is_missing(error) and self._ends_before(url) else self._around(url, error)

    @property
    def gave_up(self) -> bool:
        """Whether the list had so many gaps that nothing is read around further ones."""
        return self._gaps >= MOST_GAPS

    def place_of(self, url: httpx.URL) -> int:
        """The place of a page's first record, from 1."""
        return ((page_number(url) or 1) - 1) * (self._size or PER_PAGE) + 1

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
        self._total = page.paging.total if page.paging.total is not None else self._total
        if not page.records and (briefly or (self._size and self._lacks_records(page))):
            raise _without_records(url)
        if not briefly:
            self.take(page)
        return page

    def take(self, page: SavedPage) -> None:
        """Note a page that was read as a whole, or in an earlier process."""
        self._newest, self._size = page if page.records else self._newest, max(self._size, page.paging.records)
        self._total = page.paging.total if page.paging.total is not None else self._total

    def _lacks_records(self, page: SavedPage) -> bool:
        """Whether a page has none although X-Total or its own Link says that it should have some."""
        is_within = (
            page.paging.next is not None if self._total is None else self.place_of(page.paging.url) <= self._total
        )
        return not page.records and is_within

    def _ends_before(self, url: httpx.URL) -> bool:
        """Whether a list has no such page: it has become shorter, or without X-Total, the page before it was the last one."""
        number, before = page_number(url) or 1, self._newest
        if before is None or page_number(before.paging.url) != number - 1:
            before = self._try(page_at(url, number - 1)) if number > 1 else None
        if self._total is not None:
            return self._total < self.place_of(url)
        is_last = before is not None and before.paging.linked and before.paging.next is None
        return is_last or (before is not None and may_be_last(before.paging))

    # ---- around records that cannot be sent

    def _around(self, url: httpx.URL, error: BookferryError) -> SavedPage:
        """Return a page that cannot be read as a whole, without what is in the way. Raises the error if that does not help."""
        if self.gave_up or page_number(url) is None or not may_be_of_a_record(error):
            raise error
        total, is_first = self._total, not self._size
        behind = self._behind(url) if total is None or is_first else None
        # without X-Total, only a page behind it shows that the list goes on beyond a refusal
        is_announced = total is not None or is_first or not may_be_of_the_list(error)
        if behind is None and not (is_announced and self._is_served(url)):
            raise error
        if is_first:
            self._size = self._size_of_pages(url, behind)
        parts, failed = self._in_parts(url, error)
        if self._total is None and behind is None:  # what is missing at the end may be beyond it
            end = max((place + len(part.records) for place, part in parts.items()), default=0)
            failed = {place: reason for place, reason in failed.items() if place < end or not is_missing(reason)}
            if not parts:
                self._gaps = MOST_GAPS
                raise error
        ids = _ids_by_place({**self._beside(), **parts})
        failed = {place: reason for place, reason in failed.items() if place <= (self._total or place)}
        moved = len({total, self._total, *(part.paging.total for part in parts.values())} - {None}) > 1
        pages = [parts[place] for place in sorted(parts)]
        return joined(url, pages, gaps_of(failed, ids), size=self._size, total=self._total, moved=moved)

    def _in_parts(
        self, url: httpx.URL, error: BookferryError
    ) -> tuple[dict[int, SavedPage], dict[int, BookferryError]]:
        """Return the smaller pages by the places at which they begin, and what came back for each record that is in none of them.

        A part that cannot be read is read record by record, unless the service sends no single records.
        """
        parts, failed, in_singles = dict[int, SavedPage](), dict[int, BookferryError](), True
        begin, size = self.place_of(url), part_size(self._size)
        for place in range(begin, begin + self._size, size):
            if place > (self._total or place):
                break
            refusal = self._read_part(parts, url, place, size, error)
            if refusal is None:
                continue
            self._gaps += 1
            places, before = range(place, min(place + size, (self._total or place + size) + 1)), len(parts)
            refusals = [self._read_part(parts, url, at, 1, refusal) if in_singles else refusal for at in places]
            failed |= {at: reason for at, reason in zip(places, refusals, strict=True) if reason is not None}
            in_singles = len(parts) > before
        return parts, failed

    def _read_part(
        self, parts: dict[int, SavedPage], url: httpx.URL, place: int, size: int, error: BookferryError
    ) -> BookferryError | None:
        """Add a smaller page to `parts`; return why it cannot be read: `error`, if the service sends another number of records."""
        try:
            page = self.read(part_at(url, place, size), briefly=True)
        except UNREADABLE as refusal:
            return refusal
        fewest = min(size, self._total - place + 1) if self._total is not None else 1
        if not fewest <= len(page.records) <= size:
            return error
        parts[place] = page
        return None

    def _behind(self, url: httpx.URL) -> SavedPage | None:
        """A whole page behind this one that can be read: the next one, or if no page was read yet, the one after that."""
        page = page_number(url) or 1
        following = [page + 1] if self._size else [page + 1, page + 2]
        return next(filter(None, (self._try(page_at(url, number)) for number in following)), None)

    def _is_served(self, url: httpx.URL) -> bool:
        """Whether something else of the list can be read now: the page that was read last, or one of the first records."""
        newest = [] if self._newest is None or self._newest.paging.url == url else [self._newest.paging.url]
        return any(map(self._try, [*newest, *(part_at(url, place, 1) for place in (1, 2, 3))]))

    def _size_of_pages(self, url: httpx.URL, page: SavedPage | None) -> int:
        """The number of records of a full page, of which none was read yet, by another page: it may be the last one, with fewer records."""
        if page is None:
            return PER_PAGE
        size, before = len(page.records), (page_number(page.paging.url) or 1) - 1
        single = self._try(part_at(url, size * before + 1, 1))
        is_full = single is not None and single.ids == page.ids[:1]
        by_total = size if is_full or self._total is None else (self._total - size) // before
        return by_total if size <= by_total <= PER_PAGE else size

    def _beside(self) -> dict[int, SavedPage]:
        """The page that was read last, by its place."""
        return {} if self._newest is None else {self.place_of(self._newest.paging.url): self._newest}

    def _try(self, url: httpx.URL) -> SavedPage | None:
        with suppress(*UNREADABLE):
            return self.read(url, briefly=True)
        return None


def _without_records(url: httpx.URL) -> RefusedError:
    return RefusedError(f"GET {outside_text(url)} answered without records.", status=httpx.codes.NOT_FOUND)


def _ids_by_place(pages: Mapping[int, SavedPage]) -> dict[int, int | None]:
    """The ids of pages that begin at these places, by their own places."""
    return {begin + offset: record_id for begin, page in pages.items() for offset, record_id in enumerate(page.ids)}
