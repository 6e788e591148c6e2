"""Requests single pages of a list, from the first of its endpoints that the service has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import httpx
import msgspec

from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.listing.gaps import MOST_GAPS, PART_SIZES, Gap, first_place, may_be_of_a_record, part_at
from pipelines.service.listing.page_checkpoint import SavedPage, joined
from pipelines.service.redaction import outside_text
from pipelines.service_limits import PER_PAGE


class PageRequests:
    """Requests the pages of one list. `endpoints`: the list's addresses, the best first (service.md#lists)."""

    def __init__(self, client: LibraryClient, endpoints: Sequence[str]) -> None:
        self._client = client
        self._endpoints = endpoints
        self._gaps = 0

    def first(self) -> tuple[str, SavedPage]:
        """Return the endpoint and the first page. Raises the error of the last endpoint if the service has none of them."""
        *better, last = self._endpoints
        for endpoint in better:
            url = self._first_page(endpoint)
            try:
                return endpoint, self._read(url)
            except (RefusedError, ProtocolError, AccessDeniedError):
                continue  # missing, no listing, or not for this account: try the next endpoint
            except TemporaryError as error:
                return endpoint, self._around(url, error)
        return last, self.get(self._first_page(last))

    def _first_page(self, endpoint: str) -> httpx.URL:
        return httpx.URL(f"{self._client.api_url}/{endpoint}", params={"per_page": PER_PAGE, "page": 1})

    def get(self, url: httpx.URL) -> SavedPage:
        """Return one page, without the records that the service cannot send, if it can send others of the page.

        Raises `ProtocolError` if the response is no page of a list, and the errors of `LibraryClient.get`.
        """
        try:
            return self._read(url)
        except (TemporaryError, RefusedError, ProtocolError) as error:
            return self._around(url, error)

    def _around(self, url: httpx.URL, error: BookferryError) -> SavedPage:
        """Return a page that cannot be read as a whole, without what is in the way. Raises the error if that does not help."""
        page = self._in_parts(url) if may_be_of_a_record(error) else None
        if page is None:
            raise error
        return page

    def _in_parts(self, url: httpx.URL) -> SavedPage | None:
        """The same places by smaller pages around what cannot be sent; None if none of them can be read."""
        begin = first_place(url, PER_PAGE)
        parts, failed = dict[int, SavedPage](), dict[int, BookferryError]()
        places: Iterable[int] = () if begin is None else [begin]
        before, answered = PER_PAGE, False
        for size in PART_SIZES:
            failed = {}
            for place in (part for whole in places for part in range(whole, whole + before, size)):
                try:
                    parts[place] = self._read(part_at(url, place, size), briefly=True)
                    answered = True
                except (TemporaryError, RefusedError, ProtocolError) as error:
                    if _is_beyond_the_end(error):
                        answered = True
                    else:
                        failed[place] = error
            if not answered or len(failed) + self._gaps > MOST_GAPS:
                return None
            places, before = failed, size
        self._gaps += len(failed)
        return joined(url, parts, [self._gap(url, place, error, parts) for place, error in failed.items()])

    def _gap(self, url: httpx.URL, place: int, error: BookferryError, parts: Mapping[int, SavedPage]) -> Gap:
        ids = {begin + offset: record_id for begin, part in parts.items() for offset, record_id in enumerate(part.ids)}

        def neighbour(at: int) -> int | None:
            if at in ids or at < 1:
                return ids.get(at)
            try:
                return next(iter(self._read(part_at(url, at, 1), briefly=True).ids), None)
            except BookferryError:
                return None

        return Gap(place, neighbour(place - 1), neighbour(place + 1), str(error))

    def _read(self, url: httpx.URL, *, briefly: bool = False) -> SavedPage:
        response = self._client.get(url, briefly=briefly)
        try:
            return SavedPage.read(response, url)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ProtocolError(
                f"GET {outside_text(url)} answered something that is not a listing ({outside_text(error)}); expected an array, or an "
                "object with `records` or one other array of objects."
            ) from None

    def get_if_there(self, url: httpx.URL) -> SavedPage | None:
        """Return one page; `None` if it does not exist any more."""
        try:
            return self.get(url)
        except RefusedError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise


def _is_beyond_the_end(error: BookferryError) -> bool:
    return isinstance(error, RefusedError) and error.status == httpx.codes.NOT_FOUND
