"""Counts the requests of a tenant and finds those that exceed its rate.

Windows are half open: two requests exactly 60 seconds apart are in different windows.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 60.0


class WindowCounter:
    """The largest number of events in any window of 60 seconds.

    Some fullest window ends at an event, so it is enough to look back at each event.
    """

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self.total = 0
        self.largest = 0

    def add(self, at: float) -> None:
        """Counts an event; times must not go back."""
        self._recent.append(at)
        _drop_expired(self._recent, at)
        self.total += 1
        self.largest = max(self.largest, len(self._recent))


class Limiter:
    """At most ``limit`` accepted requests in any 60 seconds. A refused request does not count."""

    def __init__(self) -> None:
        self._accepted: deque[float] = deque()

    def admit(self, at: float, limit: int) -> float | None:
        """Returns None for an accepted request, else the seconds until one is accepted. Limit 0 is no limit."""
        _drop_expired(self._accepted, at)
        if limit and len(self._accepted) >= limit:
            return self._accepted[-limit] + WINDOW_SECONDS - at
        self._accepted.append(at)
        return None


def _drop_expired(times: deque[float], now: float) -> None:
    while times and times[0] <= now - WINDOW_SECONDS:
        times.popleft()


class RequestRate:
    """Counts and limits the requests of a tenant in all threads and both API versions."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self.reset()

    def receive(self, limit: int) -> int | None:
        """Counts a request and returns the whole seconds to wait if it exceeds the limit.

        It takes the time under the lock, so that the windows get the requests in the order of their times.
        """
        with self._lock:
            at = self._monotonic()
            self._received.add(at)
            wait = self._limiter.admit(at, limit)
            if wait is None:
                return None
            self._throttled += 1
            return max(1, math.ceil(wait))

    def counts(self) -> dict[str, int]:
        """Returns the counts since the start or the last reset."""
        with self._lock:
            received = self._received
            return {"requests": received.total, "largest_window": received.largest, "throttled": self._throttled}

    def reset(self) -> None:
        """Resets counts and windows."""
        with self._lock:
            self._received = WindowCounter()
            self._limiter = Limiter()
            self._throttled = 0
