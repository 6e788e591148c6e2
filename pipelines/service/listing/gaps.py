"""What a service cannot send of a list: one record in the way costs that record, and not the list.

Pure: nothing here sends a request.
"""

from __future__ import annotations

import httpx
import msgspec

from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError

MOST_PARTS = 5
"""Smaller pages into which a page is divided, where its size allows; twice as many where they all fail."""

HALVES = 2
"""So many smaller pages may each have a record that cannot be sent; where more fail and none is read, it is their size that is refused."""

GAP_SIZE, MOST_GAPS = 10, 20
"""Pages of ten records around whose gaps one walk reads; beyond that, the list itself is out of order."""

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


def part_sizes(size: int) -> list[int]:
    """The sizes of smaller pages around a record that cannot be sent, divisors of `size`; the next one if the service refuses one.

    The service allows any (service.md#lists). A gap of one record in a page of 50 costs a dozen requests: five pages of ten, five of two in
    one of these, and two of one.
    """
    divisors = [part for part in range(1, size) if size % part == 0]
    few = [part for part in divisors if size <= MOST_PARTS * part]
    return [*few, *(part for part in divisors if MOST_PARTS * part < size <= 2 * MOST_PARTS * part)] or divisors[-1:]


def part_at(url: httpx.URL, place: int, size: int) -> httpx.URL:
    """The address of the smaller page that begins at a place."""
    return url.copy_set_param("per_page", str(size)).copy_set_param("page", str((place - 1) // size + 1))
