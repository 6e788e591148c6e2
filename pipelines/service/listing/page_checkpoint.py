"""One answered page of a listing, and how it is kept so that a walk that was broken off goes on from it (I9)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

import httpx
import msgspec

from pipelines.records.values import record_ids
from pipelines.service.http.bodies import RECORDS
from pipelines.service.http.envelope import split_records
from pipelines.service.http.paging import PagingHeaders, identity, read_paging_headers
from pipelines.service.http.retries import SECONDS


class PageCheckpoints(Protocol):
    """Keeps the pages of a walk. What is in its marks is up to the walk."""

    def replay(self) -> Iterator[tuple[bytes, bytes]]:
        """What was appended, in order: mark and body of each page."""

    def append(self, mark: bytes, body: bytes) -> None:
        """Keep one more page; it survives the death of this process when this returns."""


class NoCheckpoints:
    """For a walk that nobody will go on with."""

    def replay(self) -> Iterator[tuple[bytes, bytes]]:
        """Nothing."""
        return iter(())

    def append(self, mark: bytes, body: bytes) -> None:
        """Forget it."""


@dataclass(frozen=True)
class SavedPage:
    """One page as it was answered."""

    paging: PagingHeaders
    records: Sequence[msgspec.Raw]
    ids: Sequence[int | None]
    body: bytes
    seconds: float
    """From sending to the end of the body, without any wait for the budget."""

    @classmethod
    def read(cls, response: httpx.Response, url: httpx.URL) -> Self:
        """From what the service sent. Raises what `split_records` and `read_paging_headers` raise."""
        records = response.extensions.get(RECORDS)
        if records is None:
            records = split_records(response.content)
        paging = read_paging_headers(response, url, len(records))
        return cls(paging, records, record_ids(records), response.content, response.extensions[SECONDS])

    @property
    def keys(self) -> Sequence[Hashable]:
        """What tells the records apart: the id, else the record itself."""
        if None not in self.ids:
            return self.ids
        return [identity(record) if one is None else one for one, record in zip(self.ids, self.records, strict=True)]

    @property
    def oldest_first(self) -> bool:
        """Whether its ids grow, so that what is added comes at the end of the list."""
        ids = [one for one in self.ids if one is not None]
        return len(self.ids) > 1 and len(ids) == len(self.ids) and all(one < other for one, other in pairwise(ids))


class PageCheckpoint(msgspec.Struct, omit_defaults=True):
    """What a log says of a page, beside its body."""

    number: int
    endpoint: str
    url: str
    total: int | None = None
    linked: bool = False
    next: str | None = None
    last: int | None = None
    early: bool = False
    """Read before its turn, and no part of the walk yet."""
    before: int = 0
    """Records that the service had sent before it."""
    requests: int = 0
    seconds: float = 0.0
    """What the walk had cost by then."""

    def encode(self, paging: PagingHeaders) -> bytes:
        """The mark of a page with this paging."""
        following = None if paging.next is None else str(paging.next)
        found = msgspec.structs.replace(
            self,
            url=str(paging.url),
            total=paging.total,
            linked=paging.linked,
            next=following,
            last=paging.last,
        )
        return msgspec.msgpack.encode(found)

    @classmethod
    def decode(cls, mark: bytes, body: bytes) -> tuple[PageCheckpoint, SavedPage]:
        """A mark, and the page that it was put on."""
        found, records = _DECODER.decode(mark), split_records(body)
        following = None if found.next is None else httpx.URL(found.next)
        paging = PagingHeaders(httpx.URL(found.url), len(records), found.total, found.linked, following, found.last)
        return found, SavedPage(paging, records, record_ids(records), body, 0.0)


_DECODER = msgspec.msgpack.Decoder(PageCheckpoint)
