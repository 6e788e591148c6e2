"""A clock that the test controls."""

from __future__ import annotations

import heapq
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)


class ManualClock:
    """Time passes only during `sleep`, and then at once. Actions that were scheduled with `at` run on the way."""

    def __init__(self, start: float = 1000.0, *, late: float = 0.0) -> None:
        self._now = start
        self._late = late
        self._orders: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()

    def monotonic(self) -> float:
        """Return the seconds."""
        return self._now

    def now(self) -> datetime:
        """Return the time of day."""
        return MIDNIGHT + timedelta(seconds=self._now)

    def sleep(self, seconds: float) -> None:
        """Let the seconds pass, and `late` more."""
        until = self._now + seconds + self._late
        while self._orders and self._orders[0][0] <= until:
            self._now, _, action = heapq.heappop(self._orders)
            action()
        self._now = until

    def at(self, moment: float, action: Callable[[], object]) -> None:
        """Run the action at this time."""
        heapq.heappush(self._orders, (moment, next(self._numbers), action))
