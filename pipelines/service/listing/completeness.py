"""x"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True)
class Page:
    """One answered page."""

    number: int
    """Its place in the collection: 1 for the first page. One that is read again has the number it had."""
    url: str
    records: Sequence[msgspec.Raw]
    """The records' JSON, byte for byte as received."""
    ids: Sequence[int | None]
    """The id of each record; none where it is no whole number."""
    total: int | None
    """X-Total as this page gave it."""


@dataclass
class ListingFacts:
    """What a walk over a listing saw; a snapshot's proof is made from it."""

    endpoint: str = ""
    pages: int = 0
    """Pages that the walk is made of, those that were read again counted again."""
    records: int = 0
    first_total: int | None = None
    last_total: int | None = None
    totals_seen: int = 0
    """How often X-Total changed, the first sight counted: 0 where the service sends none, 1 where it stood still."""
    added: int = 0
    deleted: int = 0
    """By how much X-Total grew and shrank, change by change."""
    again: int = 0
    """Pages that were read again because the collection moved."""
    movements: int = 0
    """How often the walk went back to where the collection had moved."""
    unsettled: bool = False
    """Whether it moved in a way that the walk could not follow."""
    resumed: int = 0
    """Pages that an earlier process had read."""
    requests: int = 0
    seconds: float = 0.0

    @property
    def settled(self) -> bool:
        """Whether records came or went while it was read, and all that moved was read again."""
        return self.totals_seen > 1 and not self.unsettled

    def count(self, page: Page) -> None:
        """Take one more page into account."""
        self.pages += 1
        self.records += len(page.records)
        self.see(page.total)

    def see(self, total: int | None) -> None:
        """Take note of an X-Total, the newest one."""
        if total is None:
            return
        if self.last_total is None:
            self.first_total = self.last_total = total
            self.totals_seen = 1
        change = total - self.last_total
        self.totals_seen += change != 0
        self.added += max(0, change)
        self.deleted += max(0, -change)
        self.last_total = total
