"""What a service cannot send of a list: one record in the way costs that record, and not the list.

Pure: nothing here sends a request.
"""

from __future__ import annotations

import httpx
import msgspec

from pipelines.errors import BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.service.http.paging import page_number

PART_SIZES = (10, 2, 1)
"""Records of the smaller pages around a record that cannot be sent (service.md#lists allows any size): each divides the one before it, so
that a gap of one record costs a dozen requests."""

MOST_GAPS = 20
"""Records that one walk leaves out; beyond that, the list itself is out of order."""

_OF_A_RECORD = frozenset({httpx.codes.BAD_REQUEST, httpx.codes.UNPROCESSABLE_ENTITY})
"""Refusals that a single record may cause. Others concern the list, the page or the account."""


class Gap(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record that the service cannot send."""

    place: int
    """Its place in the list as the service sent it, from 1."""
    before: int | None
    after: int | None
    """The ids of the records before and after it."""
    reason: str
    """What was tried, and what came back."""


def may_be_of_a_record(error: BookferryError) -> bool:
    """Whether a single record may be the reason why a page cannot be read."""
    if isinstance(error, RefusedError):
        return error.status in _OF_A_RECORD
    return isinstance(error, TemporaryError) or type(error) is ProtocolError


def first_place(url: httpx.URL, size: int) -> int | None:
    """The place of the first record of a page with so many records; None where its address does not say it."""
    number = page_number(url)
    return (number - 1) * size + 1 if number and url.params.get("per_page") == str(size) else None


def part_at(url: httpx.URL, place: int, size: int) -> httpx.URL:
    """The address of the smaller page that begins at a place."""
    return url.copy_set_param("per_page", str(size)).copy_set_param("page", str((place - 1) // size + 1))
