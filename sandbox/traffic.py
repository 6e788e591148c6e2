"""How many requests a tenant has received, and which of them exceed its rate.

Windows are half open: two requests exactly 60 seconds apart are never in the same one.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

WINDOW_SECONDS = 60.0


class WindowCounter:
    """The largest number of events that any window of 60 seconds has held.

    The fullest window can always be moved until it ends at an event, so it is enough to look back at each arrival.
    """

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self.total = 0
        self.largest = 0

    def add(self, at: float) -> None:
        """Count one event; times must not go back."""
        self._recent.append(at)
        _drop_expired(self._recent, at)
        self.total += 1
        self.largest = max(self.largest, len(self._recent))


class Limiter:
    """At most ``limit`` accepted requests in any 60 seconds; a refused request costs nothing."""

    def __init__(self) -> None:
        self._accepted: deque[float] = deque()

    def admit(self, at: float, limit: int) -> float | None:
        """Accept one request (None) or tell in how many seconds the next would be accepted. Limit 0 is no limit."""
        _drop_expired(self._accepted, at)
        if limit and len(self._accepted) >= limit:
            return self._accepted[-limit] + WINDOW_SECONDS - at
        self._accepted.append(at)
        return None


def _drop_expired(times: deque[float], now: float) -> None:
    while times and times[0] <= now - WINDOW_SECONDS:
        times.popleft()


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """What the control endpoint tells about one tenant."""

    requests: int
    largest_window: int
    throttled: int


class Traffic:
    """Counts and limits the requests of one tenant, over all threads and both API versions."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self.reset()

    def receive(self, limit: int) -> int | None:
        """Count an arrival; the whole seconds to wait if it is one too many.

        The time is taken under the lock, so that the windows see arrivals in the order of their times.
        """
        with self._lock:
            at = self._monotonic()
            self._received.add(at)
            wait = self._limiter.admit(at, limit)
            if wait is None:
                return None
            self._throttled += 1
            return max(1, math.ceil(wait))

    def counts(self) -> RequestCounts:
        """Everything received since the start or the last reset."""
        with self._lock:
            return RequestCounts(self._received.total, self._received.largest, self._throttled)

    def reset(self) -> None:
        """Begin again: no arrivals, an empty window."""
        with self._lock:
            self._received = WindowCounter()
            self._limiter = Limiter()
            self._throttled = 0
