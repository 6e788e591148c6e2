"""Counts the requests of a tenant and finds those that exceed its rate.

Windows are half open: two requests exactly 60 seconds apart are in different windows.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 60.0


class RequestRate:
    """Counts and limits the requests of a tenant in all threads and both API versions."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Resets counts and windows."""
        with self._lock:
            self._received: deque[float] = deque()
            self._accepted: deque[float] = deque()
            self._requests, self._largest_window, self._throttled = 0, 0, 0

    def receive(self, limit: int) -> int | None:
        """Counts a request and returns the whole seconds to wait if it exceeds the limit; 0 is no limit.

        A refused request does not count for the limit. Some fullest window ends at a request, so it is enough to look back at each.
        It takes the time under the lock, so that the windows get the requests in the order of their times.
        """
        with self._lock:
            at = self._monotonic()
            for times in (self._received, self._accepted):
                while times and times[0] <= at - WINDOW_SECONDS:
                    times.popleft()
            self._received.append(at)
            self._requests += 1
            self._largest_window = max(self._largest_window, len(self._received))
            if limit and len(self._accepted) >= limit:
                self._throttled += 1
                return max(1, math.ceil(self._accepted[-limit] + WINDOW_SECONDS - at))
            self._accepted.append(at)
            return None

    def counts(self) -> dict[str, int]:
        """Returns the counts since the start or the last reset."""
        with self._lock:
            return {
                "requests": self._requests,
                "largest_window": self._largest_window,
                "throttled": self._throttled,
            }
