"""Reads both ends of a list, where new records appear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import httpx
import msgspec

from pipelines.errors import ProtocolError
from pipelines.records.values import decode_record
from pipelines.service.http.envelope import split_records
from pipelines.service.http.paging import Route, identity, page_number, read_paging_headers
from pipelines.service.redaction import outside_text
from pipelines.service_limits import PER_PAGE


class ListEnds(NamedTuple):
    """Records of a list. `are_both`: of both its ends; else nothing says which page is the last, and they are those of the first."""

    records: list[dict[str, Any]]
    are_both: bool


def ends_of_list(
    get: Callable[[httpx.URL], httpx.Response], url: str, reaches_back: Callable[[list[dict[str, Any]]], bool]
) -> ListEnds:
    """Returns the records of a list's first page and of its last two: a new record appears at one of the ends.

    `reaches_back`: whether a page has a record that is older than the one that is looked for. From an end whose pages have none, the
    next page inwards is read, and so on. Raises the errors of `get`, and `ProtocolError` if a page is no list.
    """
    first = httpx.URL(url, params={"page": "1", "per_page": str(PER_PAGE)})
    response, route = get(first), Route()
    raw = _records(response)
    following = route.after(read_paging_headers(response, first, len(raw)))
    last_page = route.last_page(first)
    last = page_number(last_page or first) or 1
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
    return ListEnds([*by_content.values()], are_both=last_page is not None or following is None)


def _records(response: httpx.Response) -> list[msgspec.Raw]:
    try:
        return split_records(response.content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(
            f"GET {outside_text(response.request.url)} answered with a body that is no list of records ({outside_text(error)})."
        ) from None
