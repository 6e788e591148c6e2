"""What two pages say about whether the collection moved between them: records that came and went shift all that follows (I4).

Pages are windows over a list. A record that goes before the window lets another slip through to the page that was read already; one that
comes pushes one onto the next page, where it is seen twice. X-Total tells of it, unless as many came as went. Then the seams may: whoever
reads the last page early finds that the pages before it have shifted into it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import httpx

PAGES_REMEMBERED = 16
"""Pages whose ids are remembered: a shift of 800 records is found by walking back over them, a larger one from the first page on."""


class Drift(Enum):
    """What lies between two pages that follow each other."""

    NONE = auto()
    COUNT_CHANGED = auto()
    """The number of records changed: what shifted is found by walking back to where the pages overlap."""
    OVERLAP = auto()
    """A record is on both although their number did not change: nobody knows what shifted where."""


@dataclass(frozen=True)
class RememberedPage:
    """One page of the walk, as far as it is remembered."""

    number: int
    url: httpx.URL
    total: int | None
    keys: frozenset[Hashable]
    """What tells its records apart."""
    before: int
    """Records that the service had sent before it."""


class RecentPages:
    """The newest pages of a walk."""

    def __init__(self) -> None:
        self._pages: deque[RememberedPage] = deque(maxlen=PAGES_REMEMBERED)

    def add(self, page: RememberedPage) -> None:
        """Take in the page that was read last."""
        self._pages.append(page)

    @property
    def newest(self) -> RememberedPage:
        """The page that was read last."""
        return self._pages[-1]

    def drift(self, keys: Sequence[Hashable], total: int | None) -> Drift:
        """What lies between the newest page and the one that follows it."""
        before = self._pages[-1]
        if None not in (before.total, total) and before.total != total:
            return Drift.COUNT_CHANGED
        return Drift.NONE if before.keys.isdisjoint(keys) else Drift.OVERLAP

    def is_unchanged(self, keys: Sequence[Hashable], total: int | None) -> bool:
        """Whether the newest page, read again, is what it was."""
        return self._pages[-1].keys == frozenset(keys) and self._pages[-1].total == total

    def newest_first(self) -> list[RememberedPage]:
        """The pages to look for an overlap on: backwards, each once, none twice that was walked over again."""
        pages: dict[int, RememberedPage] = {}
        for page in reversed(self._pages):
            pages.setdefault(page.number, page)
        return [pages[number] for number in sorted(pages, reverse=True)]

    def overlaps(self, keys: Sequence[Hashable]) -> bool:
        """Whether a page holds a record of those that are remembered: then nothing lies between them."""
        return any(not page.keys.isdisjoint(keys) for page in self._pages)
