"""How pages lead to pages (trap A2): what an answer says of the way, where the next page is, which pages can be foreseen, what is a loop.

Pure: nothing here sends a request or reads a record beyond its id.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import httpx
import msgspec

from pipelines.errors import PagingLoopError, ProtocolError
from pipelines.service.redaction import outside_text
from pipelines.service_limits import DEFAULT_PER_PAGE, PER_PAGE

MAX_PAGES = 1_000_000
"""A listing that has not ended by then never will (I13): that many pages take eleven days at 60 requests a minute."""

MAX_EMPTY_PAGES = 2
"""Pages without records in a row at which a listing that still names a next page is taken to be endless."""

_PAGING = frozenset({"first", "prev", "previous", "next", "last"})
"""Link relations of service-api.md, Limits; any other is not about pages (a CDN sends `preload`)."""

_LINK = re.compile(r"<([^<>]*)>([^<>]*)")
_PAGE = re.compile(r"[?&]page=(\d+)(?=[&#]|$)")
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)


@dataclass(frozen=True)
class PagingHeaders:
    """What one page says of the way through the listing."""

    url: httpx.URL
    records: int
    """How many the service sent, before anything is filtered (trap A3)."""
    total: int | None = None
    """X-Total, where it is a number."""
    linked: bool = False
    """Whether there is a Link header about pages; without one the way is found by counting."""
    next: httpx.URL | None = None
    last: int | None = None
    """Number of the last page."""


def read_paging_headers(response: httpx.Response, url: httpx.URL, records: int) -> PagingHeaders:
    """The paging headers of the answer for `url` (service-api.md, Limits: X-Total and Link), however odd they are.

    Raises `ProtocolError` where the next page has no address that can be understood. Whether it may be asked there is not decided here.
    """
    links = _links(response.headers.get("link", ""))
    return PagingHeaders(
        url=url,
        records=records,
        total=_number(response.headers.get("x-total", ""), digits=15),
        linked=bool(links),
        next=_address(url, links["next"]) if "next" in links else None,
        last=_number(found[1], digits=9) if (found := _PAGE.search(links.get("last", ""))) else None,
    )


def _links(header: str) -> dict[str, str]:
    """Relation → address; of several for one relation the first."""
    found: dict[str, str] = {}
    for target, parameters in _LINK.findall(header):
        rel = _REL.search(parameters)
        for name in (rel[1] or rel[2] or "").lower().split() if rel else ():
            if name in _PAGING:
                found.setdefault(name, target.strip())
    return found


def _address(page: httpx.URL, link: str) -> httpx.URL:
    """The absolute address of a link; with our page size where it names a page but no size, which would mean another page.

    From one page to the next only the number changes, so that all but the number is worked out once.
    """
    found = _PAGE_NUMBER.search(link)
    if found is None:
        return _resolved(page, link)
    resolved = _resolved_apart(_with_page(str(page), 0), _with_page(link, 0))
    return _parsed(_with_page(resolved, int(found[0])))


@lru_cache(maxsize=256)
def _parsed(address: str) -> httpx.URL:
    """A page is foreseen, then linked to: taken apart once."""
    return httpx.URL(address)


@lru_cache(maxsize=64)
def _resolved_apart(page: str, link: str) -> str:
    return str(_resolved(httpx.URL(page), link))


def _resolved(page: httpx.URL, link: str) -> httpx.URL:
    try:
        url = page.join(link).copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError):
        raise ProtocolError(
            f"GET {outside_text(page)} named a page whose address cannot be understood: {outside_text(link)}. Reading stopped."
        ) from None
    if "page" in url.params and "per_page" not in url.params and "per_page" in page.params:
        return url.copy_set_param("per_page", page.params["per_page"])
    return url


_PAGE_NUMBER = re.compile(r"(?<=[?&]page=)[0-9]{1,9}(?=[&#]|$)")


def _with_page(address: str, number: int) -> str:
    """An address that names a page, for another page."""
    return _PAGE_NUMBER.sub(str(number), address, count=1)


def page_number(url: httpx.URL) -> int | None:
    """The parameter `page`, where it is a number that may be meant."""
    found = _PAGE_NUMBER.search(str(url))
    return int(found[0]) if found else None


def same_page(one: httpx.URL, other: httpx.URL) -> bool:
    """Whether two addresses name the same page: the order and the escapes of their parameters do not matter."""
    return str(one) == str(other) or _canonical(one) == _canonical(other)


def _canonical(url: httpx.URL) -> tuple[object, ...]:
    address = str(url)
    return page_number(url), _canonical_apart(_with_page(address, 0))


@lru_cache(maxsize=64)
def _canonical_apart(address: str) -> tuple[object, ...]:
    url = httpx.URL(address)
    return url.scheme, url.netloc, url.path, *sorted(url.params.multi_items())


def _number(text: str, *, digits: int) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def may_be_last(page: PagingHeaders) -> bool:
    """Whether a page of a service that says nothing of pages is not full: neither the size we ask for nor the one it has by itself."""
    return not page.linked and page.total is None and page.records not in (PER_PAGE, DEFAULT_PER_PAGE)


def is_unpaged(page: PagingHeaders, records: Sequence[msgspec.Raw], following: Sequence[msgspec.Raw]) -> bool:
    """Whether a list has no pages at all: asked for the second page, the service answers the first one again, and that is not full.

    A full page that comes again is a loop (trap A2): more records may lie behind it.
    """
    first = page_number(page.url) in (1, None)
    return first and may_be_last(page) and list(map(identity, records)) == list(map(identity, following))


class Route:
    """Where the next page is: what Link says; without one, the next page number until X-Total, or an empty page, is reached.

    It also foresees the pages after that one, so that they can be fetched ahead: only while the service counts its pages, and never
    beyond the end that the latest page announced, so that no request is wasted there.
    """

    def __init__(self) -> None:
        self._page_size = 0
        self._seen = 0
        self._end = 0
        self._foresees = True

    @property
    def seen(self) -> int:
        """Records of the pages so far."""
        return self._seen

    def back_to(self, seen: int) -> None:
        """The walk goes back to the page before which so many records were seen."""
        self._seen = seen

    def after(self, page: PagingHeaders) -> httpx.URL | None:
        """The address of the page after `page`, or `None` at the end. Call it once for every page, in order."""
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
        """The address of the page that will come after the one at `url`, or `None` where that is not certain enough."""
        number = page_number(url)
        if not self._foresees or number is None or number >= self._end:
            return None
        return _parsed(_with_page(str(url), number + 1))

    def stop_foreseeing(self) -> None:
        """The service led elsewhere than foreseen. Its Link is what counts; guessing on would waste requests."""
        self._foresees = False

    def last_page(self, page: PagingHeaders, like: httpx.URL | None) -> httpx.URL | None:
        """The address, made like another one, of the last page as `page` announces it; `None` where that cannot be foreseen."""
        last = self._last_number(page)
        if not self._foresees or like is None or page_number(like) is None or not last:
            return None
        return _parsed(_with_page(str(like), last))

    def _last_number(self, page: PagingHeaders) -> int:
        """The smallest of the ends that X-Total and Link rel="last" promise; 0 where nobody knows."""
        ends = []
        if page.total is not None and self._page_size:
            ends.append(math.ceil(page.total / self._page_size))
        if page.last is not None:
            ends.append(page.last)
        return min(ends, default=0)


class LoopGuard:
    """Stops a listing that comes back to a page, repeats one under another address, or goes on without end (I13).

    Remembers 8 bytes for the address of each page and 8 for the ids of its first and last record. The whole body would not do, because
    a record's signed addresses are different in every answer.
    """

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._pages = 0
        self._records = 0
        self._empty = 0

    def back_to(self, seen: int) -> None:
        """The collection moved, and pages are read again, which is no loop: the walk sees to it that this ends."""
        self._known.clear()
        self._records = seen

    def check(self, page: PagingHeaders, records: Sequence[msgspec.Raw], upcoming: httpx.URL | None) -> None:
        """Take note of a page and of where it leads; raise `PagingLoopError` if that is no progress."""
        self._pages += 1
        self._records += len(records)
        self._empty = 0 if records else self._empty + 1
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
            f"(X-Total: {total}). Reading stopped; nothing was published. Tell the service's operators."
        )


@lru_cache(maxsize=16)  # a page is where another leads to first, and itself next
def _address_digest(url: httpx.URL) -> bytes:
    return _digest(b"address", repr(_canonical(url)).encode())


def _digest(kind: bytes, *parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=8, person=kind).digest()


class _Identified(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"null")


_IDENTITY = msgspec.json.Decoder(_Identified)


def identity(record: msgspec.Raw) -> bytes:
    """The JSON of a record's id; of the whole record where it has none."""
    try:
        identity = bytes(_IDENTITY.decode(record).id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bytes(record)
    return bytes(record) if identity == b"null" else identity
