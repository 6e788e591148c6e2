"""What a service cannot send of a list: one record in the way costs that record, and not the list.

Pure: nothing here sends a request.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx
import msgspec
from msgspec.structs import replace

from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError

MOST_GAPS = 20
"""Parts of pages around whose gaps one walk reads; beyond that, the list itself is out of order."""

_OF_A_RECORD = frozenset({httpx.codes.BAD_REQUEST, httpx.codes.UNPROCESSABLE_ENTITY})
"""Refusals that say nothing of the list as a whole, of the end of the list or of the account."""


class Gap(msgspec.Struct, frozen=True, omit_defaults=True):
    """Records that the service cannot send: one, or several where it sends no smaller pages."""

    place: int
    """The place of the first one in the list as the service sent it, from 1."""
    last: int
    """The place of the last one."""
    before: int | None
    after: int | None
    """The ids of the records before and after it."""
    reason: str
    """What was tried, and what came back."""

    @property
    def records(self) -> int:
        """Their number."""
        return self.last - self.place + 1


def may_be_of_a_record(error: BookferryError) -> bool:
    """Whether a single record may be the reason why a page cannot be read."""
    return isinstance(error, RefusedError) or type(error) in (TemporaryError, ProtocolError, AccessDeniedError)


def may_be_of_the_list(error: BookferryError) -> bool:
    """Whether a service also says that of a list as a whole, or of a page beyond its end."""
    refused = isinstance(error, RefusedError) and error.status not in _OF_A_RECORD
    return refused or isinstance(error, AccessDeniedError)


def is_missing(error: BookferryError) -> bool:
    """Whether the service says that nothing is there."""
    return isinstance(error, RefusedError) and error.status == httpx.codes.NOT_FOUND


def part_size(size: int) -> int:
    """The size of smaller pages around a record that cannot be sent, a divisor of `size`: parts of ten for pages of 50, of five for 25.

    The service allows any (service.md#lists). A gap of one record costs a request for each part, and one for each record of one part.
    """
    return max(part for part in range(1, size + 1) if size % part == 0 and part * part <= 2 * size)


def part_at(url: httpx.URL, place: int, size: int) -> httpx.URL:
    """The address of the smaller page that begins at a place."""
    return url.copy_set_param("per_page", str(size)).copy_set_param("page", str((place - 1) // size + 1))


def gaps_of(failed: Mapping[int, BookferryError], ids: Mapping[int, int | None]) -> list[Gap]:
    """The gaps of records by the places of those that cannot be read, and why. `ids`: those of others, by their places."""
    gaps: list[Gap] = []
    for place, reason in failed.items():
        if gaps and gaps[-1].last == place - 1:
            gaps[-1] = replace(gaps[-1], last=place, after=ids.get(place + 1))
        else:
            gaps.append(Gap(place, place, ids.get(place - 1), ids.get(place + 1), str(reason)))
    return gaps
