"""One page of a listing, and its stored form, from which an interrupted walk resumes (I9)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol, Self

import httpx
import msgspec

from pipelines.records.values import record_ids
from pipelines.service.http.envelope import split_records
from pipelines.service.http.paging import PagingHeaders, identity, page_at, page_number, read_paging_headers
from pipelines.service.http.retries import SECONDS
from pipelines.service.listing.gaps import Gap


class PageCheckpoints(Protocol):
    """Stores the pages of a walk. Only the walk reads its checkpoints."""

    def replay(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the stored pages in order: checkpoint and body."""

    def append(self, checkpoint: bytes, body: bytes) -> None:
        """Store one more page; it survives the death of this process once this returns."""


@dataclass(frozen=True)
class SavedPage:
    """One page as the service sent it."""

    paging: PagingHeaders
    records: Sequence[msgspec.Raw]
    ids: Sequence[int | None]
    body: bytes
    seconds: float
    """Seconds from sending to the end of the body, without any wait for the budget."""
    gaps: tuple[Gap, ...] = ()
    """The records of the page that the service cannot send; the page was read in parts around them."""
    moved: bool = False
    """Whether X-Total changed between its parts, so that a record may have slipped past them."""

    @classmethod
    def read(cls, response: httpx.Response) -> Self:
        """Read a response; its address is the one that it came from, after any redirect (RFC 3986, 5.1.3).

        Raises the errors of `split_records` and `read_paging_headers`.
        """
        records = split_records(response.content)
        paging = read_paging_headers(response, response.request.url, len(records))
        return cls(paging, records, record_ids(records), response.content, response.extensions[SECONDS])

    @property
    def keys(self) -> Sequence[Hashable]:
        """The keys that distinguish the records: the id, or the whole record if it has no id."""
        if None not in self.ids:
            return self.ids
        return [
            identity(record) if record_id is None else record_id
            for record_id, record in zip(self.ids, self.records, strict=True)
        ]


def joined(
    url: httpx.URL, pages: Sequence[SavedPage], gaps: Sequence[Gap], *, size: int, total: int | None, moved: bool
) -> SavedPage:
    """The page at `url` from its parts, in their order. Its paging headers are what the page would have had.

    Without parts and X-Total, a page follows. `moved`: the list changed while they were read.
    """
    records = [record for page in pages for record in page.records]
    linked, number = not pages or any(page.paging.linked for page in pages), page_number(url) or 1
    goes_on = number * size < total if total is not None else not pages or pages[-1].paging.next is not None
    paging = PagingHeaders(
        url,
        len(records) + sum(gap.records for gap in gaps),
        total,
        linked,
        page_at(url, number + 1) if linked and goes_on else None,
        ceil(total / size) if linked and total is not None else None,
    )
    body = b'{"records":[' + b",".join(map(bytes, records)) + b"]}"
    seconds = max((page.seconds for page in pages), default=0.0)
    return SavedPage(paging, records, record_ids(records), body, seconds, tuple(gaps), moved)


class PageCheckpoint(msgspec.Struct):
    """The log's entry of a page, beside its body."""

    number: int
    endpoint: str
    walk: int
    """Which walk over the listing."""
    paging: PagingHeaders
    in_turn: bool = False
    """Whether the page was requested after the page before it had arrived."""
    requests: int = 0
    seconds: float = 0.0
    """Requests and seconds of the walk up to this page."""
    gaps: tuple[Gap, ...] = ()
    moved: bool = False

    def encode(self) -> bytes:
        """Return the stored form."""
        return msgspec.msgpack.encode(self, enc_hook=str)

    @classmethod
    def decode(cls, checkpoint: bytes, body: bytes) -> tuple[PageCheckpoint, SavedPage]:
        """Return a checkpoint and its page."""
        stored, records = _DECODER.decode(checkpoint), split_records(body)
        return stored, SavedPage(stored.paging, records, record_ids(records), body, 0.0, stored.gaps, stored.moved)


class WalkLog:
    """The stored pages of all walks over one list or several, one walk after the other: an interrupted run goes on where it ends.

    Each run takes the same walks in the same order. Without a `log` nothing is stored.
    """

    def __init__(self, log: PageCheckpoints | None = None) -> None:
        self._log = log
        self._stored = (PageCheckpoint.decode(*entry) for entry in (log.replay() if log is not None else ()))
        self._next = next(self._stored, None)

    def replay(self, endpoints: Sequence[str], walk: int) -> Iterator[tuple[PageCheckpoint, SavedPage]]:
        """Yield the stored pages of one walk over the list at one of these addresses."""
        while self._next is not None and self._next[0].endpoint in endpoints and self._next[0].walk == walk:
            stored, self._next = self._next, next(self._stored, None)
            yield stored

    def append(self, checkpoint: PageCheckpoint, body: bytes) -> None:
        """Store one more page. What a walk reads beyond its stored pages, where those of a later one follow, is read anew by each run."""
        if self._log is not None and self._next is None:
            self._log.append(checkpoint.encode(), body)


_DECODER = msgspec.msgpack.Decoder(PageCheckpoint, dec_hook=lambda _url, text: httpx.URL(text))
