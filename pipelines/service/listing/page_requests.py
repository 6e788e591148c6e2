"""Requests single pages of a list, from the first of its endpoints that the service has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import httpx
import msgspec

from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.http.paging import may_be_last, page_at, page_number
from pipelines.service.listing.gaps import (
    MOST_GAPS,
    PART_SIZES,
    Gap,
    is_missing,
    may_be_of_a_record,
    may_be_of_the_list,
    part_at,
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
        self._largest = 0
        self._gaps = 0

    def first(self) -> tuple[str, SavedPage]:
        """Return the endpoint and the first page. Raises the error of the last endpoint if the service has none of them."""
        *better, last = self._endpoints
        for endpoint in better:
            url = self._first_page(endpoint)
            try:
                return endpoint, self.read(url)
            except (RefusedError, ProtocolError, AccessDeniedError):
                continue  # missing, no listing, or not for this account: try the next endpoint
            except TemporaryError as error:
                return endpoint, self._around(self._unreadable(url), error)
        url = self._first_page(last)
        try:
            return last, self.read(url)
        except UNREADABLE as error:
            return last, self._around(self._unreadable(url), error)

    def get(self, url: httpx.URL) -> SavedPage | None:
        """Return one page as `around` does, where it cannot be read as a whole."""
        try:
            return self.read(url)
        except UNREADABLE as error:
            return self.around(url, error)

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
        return self._largest if 0 < self._largest <= DEFAULT_PER_PAGE else PER_PAGE

    def _first_page(self, endpoint: str) -> httpx.URL:
        return httpx.URL(f"{self._client.api_url}/{endpoint}", params={"per_page": PER_PAGE, "page": 1})

    def _unreadable(self, url: httpx.URL) -> _UnreadablePage:
        return _UnreadablePage(self.read, url, self.page_size)

    def _ended_before(self, page: _UnreadablePage) -> bool:
        """Whether a list without paging headers has ended before a page, or another one has become shorter."""
        newest = self._newest
        if newest is None or page_number(newest.paging.url) != page.number - 1 or not may_be_last(newest.paging):
            newest = page.before
        if newest is not None and may_be_last(newest.paging):
            return True
        known = newest or page.elsewhere
        if known is None or known.paging.total is None:
            return known is not None and known.paging.linked and known.paging.next is None
        return known.paging.total < page.begin

    def _around(self, page: _UnreadablePage, error: BookferryError) -> SavedPage:
        """Return a page that cannot be read as a whole, without what is in the way. Raises the error if that does not help."""
        if self.gave_up or page_number(page.url) is None or not may_be_of_a_record(error):
            raise error
        if may_be_of_the_list(error) and (self._total or 0) < page.begin and not page.is_announced:
            raise error
        parts, failed, size = self._in_parts(page, error)
        if not parts and not page.is_served:
            raise error
        self._gaps += len({(place - 1) // PART_SIZES[0] for place in failed})
        if not parts and self._total is None and page.behind is None:
            self._gaps = MOST_GAPS  # where the list ends is unknown
            raise error
        if not parts:
            failed, size = {page.begin: error}, self.page_size
        known = (parts or page.beside).items()
        ids = {begin + offset: record_id for begin, part in known for offset, record_id in enumerate(part.ids)}
        gaps = []
        for place, refusal in failed.items():
            last = min(place + size - 1, self._total or place + size - 1)
            before, after = (ids[at] if at in ids else page.id_outside(at) for at in (place - 1, last + 1))
            gaps.append(Gap(place, last, before, after, str(refusal)))
        return joined(page.url, parts, gaps, size=self.page_size, total=self._total)

    def _in_parts(
        self, page: _UnreadablePage, error: BookferryError
    ) -> tuple[dict[int, SavedPage], dict[int, BookferryError], int]:
        """Return smaller pages by their places, and the places and the size of those that cannot be read."""
        parts, failed, size = dict[int, SavedPage](), {page.begin: error}, self.page_size
        smaller = PART_SIZES if page.url.params.get("per_page") == str(size) == str(PER_PAGE) else ()
        for step in smaller:
            if len(failed) > MOST_GAPS or (step < PART_SIZES[0] and not parts and not page.is_served):
                break
            places = [part for place in failed for part in range(place, place + size, step)]
            failed, size = {}, step
            for place in places:
                try:
                    part = self.read(part_at(page.url, place, step), briefly=True)
                except UNREADABLE as refusal:
                    failed[place] = refusal
                    continue
                if len(part.records) > step:
                    return {}, {page.begin: error}, self.page_size  # the service has pages of one size
                parts[place] = part
            highest, behind = max(parts, default=0), self._total is None and page.behind is not None
            failed = {
                place: refusal
                for place, refusal in failed.items()
                if place <= (self._total or place)
                and (self._total or behind or place < highest or not is_missing(refusal))
            }
        return parts, failed, size

    def read(self, url: httpx.URL, *, briefly: bool = False) -> SavedPage:
        """Return one page; `briefly`: a part of it, or a page beside it, with records. Raises the errors of `UNREADABLE`, and 401."""
        response = self._client.get(url, briefly=briefly)
        try:
            page = SavedPage.read(response, url)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ProtocolError(
                f"GET {outside_text(url)} answered something that is not a listing ({outside_text(error)}); expected an array, or an "
                "object with `records` or one other array of objects."
            ) from None
        self._total = self._total if page.paging.total is None else page.paging.total
        announced = self._newest is not None and bool(self._newest.records) and self.place_of(url) <= (self._total or 0)
        if not page.records and (briefly or announced):
            raise RefusedError(f"GET {outside_text(url)} answered without records.", status=httpx.codes.NOT_FOUND)
        if not briefly:
            self._newest, self._largest = page, max(self._largest, len(page.records))
        return page


class _UnreadablePage:
    """A page that cannot be read, and the pages beside it: each is requested once, and only if it is needed."""

    def __init__(self, read: Callable[..., SavedPage], url: httpx.URL, size: int) -> None:
        self._read = read
        self.url, self.number = url, page_number(url) or 1
        self.begin = (self.number - 1) * size + 1
        self._size = size

    @cached_property
    def before(self) -> SavedPage | None:
        """The page before it, if it can be read."""
        return self._other(self.number - 1)

    @cached_property
    def behind(self) -> SavedPage | None:
        """The page behind it, if it can be read."""
        return self._other(self.number + 1)

    @cached_property
    def elsewhere(self) -> SavedPage | None:
        """A page of the first record or of the one before it, if one can be read; of a first page, also the third one."""
        first = self._try(part_at(self.url, 1, 1))
        return first or (self._other(3) if self.number == 1 else self._try(part_at(self.url, self.begin - 1, 1)))

    @cached_property
    def beside(self) -> dict[int, SavedPage]:
        """The pages before and behind it, by their places."""
        pages = {self.begin - self._size: self.before, self.begin + self._size: self.behind}
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

    def id_outside(self, place: int) -> int | None:
        """The id of a record before or behind the page; `None` if it is a record of the page or cannot be read."""
        if place < 1 or self.begin <= place < self.begin + self._size:
            return None
        page = self._try(part_at(self.url, place, 1))
        return page.ids[0] if page is not None and len(page.ids) == 1 else None

    def _other(self, number: int) -> SavedPage | None:
        return self._try(page_at(self.url, number)) if number else None

    def _try(self, url: httpx.URL) -> SavedPage | None:
        try:
            return self._read(url, briefly=True)
        except UNREADABLE:
            return None
