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
    route, by_content = Route(), dict[bytes, dict[str, Any]]()
    for _ in range(MAX_PAGES):
        response = get(page)
        records = _records(response)
        by_content.update((identity(record), decode_record(bytes(record))) for record in records)
        paging = read_paging_headers(response, page, len(records))
        following = None if may_be_last(paging) else route.after(paging)
        if following is None:
            return SearchResult(list(by_content.values()), complete=True)
        page = following
    return SearchResult(list(by_content.values()), complete=False)


def ends_of_list(
    get: Callable[[httpx.URL], httpx.Response], url: str, reaches_back: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    """Returns the records of a list's first page and of its last two: a new record appears at one of the ends.

    `reaches_back`: whether a page has a record that is older than the one that is looked for. From an end whose pages have none, the
    next page inwards is read, and so on. Raises the errors of `look_up`.
    """
    first = httpx.URL(url, params={"page": "1", "per_page": str(PER_PAGE)})
    response, route = get(first), Route()
    raw = _records(response)
    paging = read_paging_headers(response, first, len(raw))
    route.after(paging)
    last = page_number(route.last_page(paging, first) or first) or 1
    by_content: dict[bytes, dict[str, Any]] = {}

    def add(page: list[msgspec.Raw]) -> bool:
        records = {identity(record): decode_record(bytes(record)) for record in page}
        by_content.update(records)
        return reaches_back([*records.values()])

    def read(number: int) -> bool:
        return add(_records(get(first.copy_set_param("page", str(number)))))

    begins_late = not add(raw)
    back, number = False, last
    while number > 1 and not (back and number < last - 1):
        back = read(number) or back
        number -= 1
    forward = 2
    while begins_late and forward <= number:
        begins_late = not read(forward)
        forward += 1
    return list(by_content.values())


def _records(response: httpx.Response) -> list[msgspec.Raw]:
    try:
        return split_records(response.content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(
            f"GET {outside_text(response.request.url)} answered with a body that is no list of records ({outside_text(error)})."
        ) from None
