"""Pages of a list: 25 entries by default, 50 at most, ``X-Total`` and ``Link`` (service.md#lists).

A ``page`` or ``per_page`` that is no whole number above 0 counts as absent. A page beyond the last is empty and links back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from werkzeug.datastructures import MultiDict
from werkzeug.urls import iri_to_uri
from werkzeug.wrappers import Request

from sandbox.endpoints import Parameter
from sandbox.settings import Variations

DEFAULT_PER_PAGE = 25
MAX_DIGITS = 9

_WHOLE_NUMBER = {"type": ["integer", "string"]}
PAGING = (
    Parameter(
        "page", "Number of the page, from 1. A value that is no whole number above 0 counts as absent.", _WHOLE_NUMBER
    ),
    Parameter("per_page", "Entries on a page: 25 by default, cut to 50. Read like `page`.", _WHOLE_NUMBER),
)


@dataclass(frozen=True, slots=True)
class Page:
    """The requested part of a list."""

    number: int
    size: int

    @property
    def offset(self) -> int:
        """The number of entries before the page."""
        return (self.number - 1) * self.size

    def last(self, total: int) -> int:
        """Returns the number of the last page; an empty list has one page."""
        return max(1, -(-total // self.size))


def requested_page(request: Request, variations: Variations) -> Page:
    """Returns the page of the query, with at most as many entries as the service allows."""
    size = _positive(request.args.get("per_page")) or DEFAULT_PER_PAGE
    return Page(_positive(request.args.get("page")) or 1, min(size, variations.per_page_limit))


def _positive(text: str | None) -> int | None:
    """Returns a whole number above 0; a very long one becomes the largest supported one."""
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    return int(text) if len(text) <= MAX_DIGITS else 10**MAX_DIGITS


def page_headers(request: Request, page: Page, total: int, variations: Variations) -> dict[str, str]:
    """Returns ``X-Total`` and ``Link``, if the variations send them."""
    headers: dict[str, str] = {}
    if variations.x_total != "absent":
        headers["X-Total"] = str(max(0, total + variations.x_total_error))
    if variations.link != "none":
        links = _links(page, total, loop=variations.link == "loop")
        headers["Link"] = ", ".join(
            f'<{_address(request, number, rel, variations)}>; rel="{rel}"' for rel, number in links
        )
    return headers


def _links(page: Page, total: int, *, loop: bool) -> Iterator[tuple[str, int]]:
    last = page.last(total)
    yield "first", 1
    if page.number > 1:
        yield "prev", min(page.number - 1, last)
    if page.number < last:
        yield "next", page.number if loop else page.number + 1
    yield "last", last


def _address(request: Request, number: int, rel: str, variations: Variations) -> str:
    """Returns the address of the same request for another page; all other parameters stay."""
    query = MultiDict(request.args)
    query["page"] = str(number)
    target = f"{iri_to_uri(request.path)}?{urlencode(list(query.items(multi=True)))}"
    if variations.link == "relative":
        return target
    if variations.link == "foreign" and rel == "next":
        return f"https://elsewhere.example/elsewhere{target}"
    return request.host_url.rstrip("/") + target
