"""Detects whether the collection changed between two pages: an added or deleted record shifts all records after it (I4).

Pages are windows over a list. If a record before the window is deleted, another record moves to a page that was read already. If one is
added, a record moves to the next page and is seen twice. X-Total shows that, unless as many records were added as deleted. Then page
boundaries may show it: if the last page is read early, the pages before it have shifted into it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import httpx

PAGES_REMEMBERED = 16
"""Pages whose ids are remembered: the walk finds a shift of 800 records by going back over them, a larger one from the first page on."""


class Drift(Enum):
    """What happened to the collection between two pages that follow each other."""

    NONE = auto()
    COUNT_CHANGED = auto()
    """The number of records changed: the walk goes back to where the pages overlap."""
    OVERLAP = auto()
    """A record is on both pages although the number did not change: the shift cannot be located."""


@dataclass(frozen=True)
class RememberedPage:
    """One page of the walk, as far as it is remembered."""

    number: int
    url: httpx.URL
    total: int | None
    keys: frozenset[Hashable]
    """The keys that distinguish its records."""
    before: int
    """Records that the service had sent before it."""


class RecentPages:
    """The newest pages of a walk."""

    def __init__(self) -> None:
        self._pages: deque[RememberedPage] = deque(maxlen=PAGES_REMEMBERED)

    def add(self, page: RememberedPage) -> None:
        """Add the page that was read last."""
        self._pages.append(page)

    @property
    def newest(self) -> RememberedPage:
        """The page that was read last."""
        return self._pages[-1]

    def drift(self, keys: Sequence[Hashable], total: int | None) -> Drift:
        """Return the drift between the newest page and the page that follows it."""
        before = self._pages[-1]
        if None not in (before.total, total) and before.total != total:
            return Drift.COUNT_CHANGED
        return Drift.NONE if before.keys.isdisjoint(keys) else Drift.OVERLAP

    def is_unchanged(self, keys: Sequence[Hashable], total: int | None) -> bool:
        """Whether the newest page, read again, has the same records and the same X-Total."""
        return self._pages[-1].keys == frozenset(keys) and self._pages[-1].total == total

    def newest_first(self) -> list[RememberedPage]:
        """Return the remembered pages backwards, each number once, to look for an overlap."""
        pages: dict[int, RememberedPage] = {}
        for page in reversed(self._pages):
            pages.setdefault(page.number, page)
        return [pages[number] for number in sorted(pages, reverse=True)]

    def overlaps(self, keys: Sequence[Hashable]) -> bool:
        """Whether these records include a remembered one: then there is no gap between the pages."""
        return any(not page.keys.isdisjoint(keys) for page in self._pages)
