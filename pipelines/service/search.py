"""Finds publications by the flat parameters of their list, within a few pages: a search that finds half the library is useless."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from pipelines.errors import ProtocolError
from pipelines.records.values import decode_record
from pipelines.service.http.envelope import split_records
from pipelines.service.http.paging import Route, identity, may_be_last, page_number, read_paging_headers
from pipelines.service.redaction import outside_text
from pipelines.service_limits import PER_PAGE

MAX_PAGES = 4
"""Pages of one search."""


@dataclass(frozen=True)
class SearchResult:
    """The records that a search found, each once. `complete`: the service announced no further records."""

    records: list[dict[str, Any]]
    complete: bool


def look_up(get: Callable[[httpx.URL], httpx.Response], url: str, params: Mapping[str, str]) -> SearchResult:
    """Returns the records of the first pages. Raises the errors of `get`, and `ProtocolError` if a page is no list."""
    page = httpx.URL(url, params={**params, "page": "1", "per_page": str(PER_PAGE)})
    route, found = Route(), dict[bytes, dict[str, Any]]()
    for _ in range(MAX_PAGES):
        response = get(page)
        records = _records(response)
        found.update((identity(record), decode_record(bytes(record))) for record in records)
        paging = read_paging_headers(response, page, len(records))
        following = None if may_be_last(paging) else route.after(paging)
        if following is None:
            return SearchResult(list(found.values()), complete=True)
        page = following
    return SearchResult(list(found.values()), complete=False)


def first_and_last_pages(get: Callable[[httpx.URL], httpx.Response], url: str) -> list[dict[str, Any]]:
    """Returns the records of a list's first page and of its last two: a new record appears at one of the ends.

    Raises the errors of `look_up`.
    """
    first = httpx.URL(url, params={"page": "1", "per_page": str(PER_PAGE)})
    response, route = get(first), Route()
    records = _records(response)
    paging = read_paging_headers(response, first, len(records))
    route.after(paging)
    last = page_number(route.last_page(paging, first) or first) or 1
    for number in range(max(2, last - 1), last + 1):
        records += _records(get(first.copy_set_param("page", str(number))))
    return list({identity(record): decode_record(bytes(record)) for record in records}.values())


def _records(response: httpx.Response) -> list[msgspec.Raw]:
    try:
        return split_records(response.content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(
            f"GET {outside_text(response.request.url)} answered with a body that is no list of records ({outside_text(error)})."
        ) from None
