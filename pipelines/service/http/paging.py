"""How pages lead to pages (service.md#lists): X-Total and Link, the next page, pages that can be foreseen, and loops.

Pure: nothing here sends a request or reads more of a record than its id.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import httpx
import msgspec

from pipelines.errors import PageAddressError, PagingLoopError
from pipelines.service.http.link_header import Link, parse_links
from pipelines.service.http.urls import url_of
from pipelines.service.redaction import outside_text
from pipelines.service_limits import DEFAULT_PER_PAGE, PER_PAGE

MAX_PAGES = 1_000_000
"""A list that has not ended by then never will (I13): so many pages take eleven days at 60 requests a minute."""

MAX_EMPTY_PAGES = 2
"""Empty pages in a row after which a list that still names a next page counts as endless."""

_PAGING = frozenset({"first", "prev", "previous", "next", "last"})
"""Link relations of pages; others are not about pages (a CDN sends `preload`)."""

_PAGE_NUMBER = re.compile(r"(?<=[?&]page=)[0-9]{1,9}(?=[&#]|$)")


@dataclass(frozen=True)
class PagingHeaders:
    """The paging headers of one page."""

    url: httpx.URL
    records: int
    """Records on the page as the service sent it, before any filter (service.md#lists)."""
    total: int | None = None
    """X-Total, if it is a number; the largest, if the response has several: then a list that ends before it is not complete."""
    linked: bool = False
    """Whether there is a Link header about pages; without one, the next page is found by counting."""
    next: httpx.URL | None = None
    last: int | None = None
    """Number of the last page."""


def read_paging_headers(response: httpx.Response, url: httpx.URL, records: int) -> PagingHeaders:
    """Returns X-Total and Link of the response for `url` (service.md#lists), however odd they are.

    Raises `PageAddressError` if the address of the next page cannot be understood. Whether it may be requested is not checked here.
    """
    header = parse_links(response.headers.get_list("link"))
    links = _page_links(header.links)
    totals = (_number(value.strip()) for line in response.headers.get_list("x-total") for value in line.split(","))
    return PagingHeaders(
        url=url,
        records=records,
        total=max((total for total in totals if total is not None), default=None),
        linked="next" in links or (bool(links) and not header.garbled),  # a garbled header may have lost the next page
        next=_address(url, links["next"]) if "next" in links else None,
        last=int(match[0]) if (match := _PAGE_NUMBER.search(links.get("last", ""))) else None,
    )


def _page_links(links: Iterable[Link]) -> dict[str, str]:
    """Returns relation → address, for the links from this page; the first address if there are several."""
    targets: dict[str, str] = {}
    for link in links:
        if link.parameter("anchor") is None:  # with one, it starts elsewhere (RFC 8288, 3.2)
            for name in _PAGING.intersection(link.relations):
                targets.setdefault(name, link.target)
    return targets


def _address(page: httpx.URL, link: str) -> httpx.URL:
    """Returns the absolute address of a link; if the link names a page but no size, with our page size.

    Without our size, the number would mean another page.
    """
    try:
        url = url_of(_at_home(page.join(link.partition("#")[0]), page))
    except (httpx.InvalidURL, ValueError):
        raise PageAddressError(
            f"GET {outside_text(page)} named a page whose address cannot be understood: {outside_text(link)}. Reading stopped."
        ) from None
    if _is_another_list(url, page):
        raise PageAddressError(
            f"GET {outside_text(page)} named a page of another list: {outside_text(url)}. Nothing was sent there, and reading stopped. "
            "Write to the service's operators."
        )
    if "page" in url.params and "per_page" not in url.params and "per_page" in page.params:
        return url.copy_set_param("per_page", page.params["per_page"])
    return url


def _at_home(url: httpx.URL, page: httpx.URL) -> httpx.URL:
    """The address on the page's own host, if it has the same path, with or without a slash at the end.

    Behind a proxy, a service names the scheme, host and port that it sees itself. Nothing is sent there (I2).
    """
    page_path, path = (address.raw_path.partition(b"?")[0].rstrip(b"/") for address in (page, url))
    return page.copy_with(query=url.query) if page_path == path else url


def _is_another_list(url: httpx.URL, page: httpx.URL) -> bool:
    """Whether an address of the same API is neither the page's list nor below it (publications/page/2): its records are others."""
    api, _, path = page.path.rpartition("/api/")
    own_list = f"{api}/api/{path.rstrip('/').removesuffix('/all')}/"
    same_api = (url.scheme, url.netloc) == (page.scheme, page.netloc) and url.path.startswith(f"{api}/api/")
    return same_api and ".." not in url.path and not f"{url.path}/".startswith(own_list)


def page_number(url: httpx.URL) -> int | None:
    """Returns the parameter `page` if it is a plausible number."""
    match = _PAGE_NUMBER.search(str(url))
    return int(match[0]) if match else None


def page_at(like: httpx.URL, number: int) -> httpx.URL:
    """Returns the address of another page, in the form of `like`."""
    return httpx.URL(_PAGE_NUMBER.sub(str(number), str(like), count=1))


def is_counted(url: httpx.URL, other: httpx.URL) -> bool:
    """Whether the addresses of two pages differ in nothing but number and size, so that any page can be requested by its number."""
    a, b = (page.params.remove("page").remove("per_page") for page in (url, other))
    return same_page(url.copy_with(params=a), other.copy_with(params=b))


def same_page(url: httpx.URL, other: httpx.URL) -> bool:
    """Whether two addresses name the same page; order and escapes of their parameters do not matter."""
    return str(url) == str(other) or _canonical(url) == _canonical(other)


def _canonical(url: httpx.URL) -> tuple[object, ...]:
    return url.scheme, url.netloc, url.path, *sorted(url.params.multi_items())


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def may_be_last(page: PagingHeaders) -> bool:
    """Whether a page without paging headers is not full: it has neither the size that we ask for nor the service's default size."""
    return not page.linked and page.total is None and page.records not in (PER_PAGE, DEFAULT_PER_PAGE)


def is_unpaged(page: PagingHeaders, records: Sequence[msgspec.Raw], following: Sequence[msgspec.Raw]) -> bool:
    """Whether a list has no pages: the second page repeats the first one, and that is not full.

    A full page that comes again is a loop (I13): more records may follow it.
    """
    first = page_number(page.url) in (1, None)
    return first and may_be_last(page) and list(map(identity, records)) == list(map(identity, following))


class Route:
    """Finds the next page: the one that Link names; without Link, the next number until X-Total or an empty page is reached.

    It also foresees the pages after that one, so that they can be fetched ahead: only while the service counts its pages, and never beyond
    the end that the latest page announced, so that no request is wasted.
    """

    def __init__(self) -> None:
        self._page_size = 0
        self._seen = 0
        self._end = 0
        self._foresees = True

    def after(self, page: PagingHeaders) -> httpx.URL | None:
        """Return the address of the page after `page`, `None` at the end. Call it once for every page, in order."""
        self._page_size = max(self._page_size, page.records)
        self._seen += page.records
        self._end = self._last_number(page)
        if page.linked:
            if page.next is not None and page_number(page.next) != (page_number(page.url) or 1) + 1:
                self.stop_foreseeing()
            return page.next
        if not page.records or (page.total is not None and self._seen >= page.total):
            return None
        return page.url.copy_set_param("page", (page_number(page.url) or 1) + 1)

    def foreseen(self, url: httpx.URL) -> httpx.URL | None:
        """Return the address of the page after the one at `url`; `None` if it is not certain."""
        number = page_number(url)
        if not self._foresees or number is None or number >= self._end:
            return None
        return page_at(url, number + 1)

    def stop_foreseeing(self) -> None:
        """Stop foreseeing pages: the service's Link led elsewhere, and further guesses would waste requests."""
        self._foresees = False

    def last_page(self, like: httpx.URL | None) -> httpx.URL | None:
        """Return the address of the last page that the latest page announced, in the form of `like`; `None` if it cannot be foreseen."""
        if not self._foresees or like is None or page_number(like) is None or not self._end:
            return None
        return page_at(like, self._end)

    def _last_number(self, page: PagingHeaders) -> int:
        """Return the smaller of the ends that X-Total and Link rel="last" announce; 0 if neither does."""
        ends = []
        if page.total is not None and self._page_size:
            ends.append(math.ceil(page.total / self._page_size))
        if page.last is not None:
            ends.append(page.last)
        return min(ends, default=0)


class LoopGuard:
    """Stops a list that returns to a page, repeats one under another address, or goes on without end (I13).

    It remembers 8 bytes for the address of each page and 8 for the ids of its first and last record. The whole body is no use, because the
    signed addresses in a record change with every response.
    """

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._pages = 0
        self._records = 0
        self._empty = 0

    def forget(self) -> None:
        """Allow records to come again because the collection moved. That is no loop."""
        self._known.clear()

    def check(self, page: PagingHeaders, records: Sequence[msgspec.Raw], upcoming: httpx.URL | None) -> None:
        """Note a page and the next address; raise `PagingLoopError` if that is no progress."""
        self._pages += 1
        self._records += len(records)
        self._empty = 0 if page.records else self._empty + 1
        self._known.add(_address_digest(page.url))
        if records:
            ids = _digest(b"records", identity(records[0]), identity(records[-1]))
            if ids in self._known:
                raise self._error(page, "repeats an earlier page")
            self._known.add(ids)
        if upcoming is None:
            return
        if _address_digest(upcoming) in self._known:
            raise self._error(page, "leads back to a page that was read before")
        if self._empty >= MAX_EMPTY_PAGES:
            raise self._error(page, f"goes on after {self._empty} pages without records")
        if page.total is not None and self._records > 2 * page.total + 10 * PER_PAGE:
            raise self._error(page, "goes on far beyond its own count")
        if self._pages >= MAX_PAGES:
            raise self._error(page, "goes on without end")

    def _error(self, page: PagingHeaders, what: str) -> PagingLoopError:
        total = "not sent" if page.total is None else f"{page.total:,}"
        return PagingLoopError(
            f"The listing {what}: {outside_text(page.url)}, page {self._pages:,} of the walk, with {self._records:,} records read "
            f"(X-Total: {total}). Reading stopped; nothing was published. Write to the service's operators."
        )


def _address_digest(url: httpx.URL) -> bytes:
    return _digest(b"address", repr(_canonical(url)).encode())


def _digest(kind: bytes, *parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=8, person=kind).digest()


class _Identified(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"null")


_IDENTITY = msgspec.json.Decoder(_Identified)


def identity(record: msgspec.Raw) -> bytes:
    """Returns the JSON of a record's id; of the whole record if it has no id."""
    try:
        identity = bytes(_IDENTITY.decode(record).id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bytes(record)
    return bytes(record) if identity == b"null" else identity
