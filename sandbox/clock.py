"""The only place that asks the machine for the time: every rule takes a clock, so that a test can own the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the rules need of time."""

    def now(self) -> float:
        """Seconds since 1970, as people and signed addresses count them."""

    def monotonic(self) -> float:
        """Seconds that never go back; windows and limits are measured with them."""

    def sleep(self, seconds: float) -> None:
        """Let this request wait."""


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let this request wait."""
        time.sleep(seconds)


class ShiftedClock:
    """Another clock, ``ahead`` by some seconds: what the time of day is, not how long something takes, can be ordered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = 0.0

    def now(self) -> float:
        """Seconds since 1970, shifted."""
        return self._clock.now() + self.ahead

    def monotonic(self) -> float:
        """Seconds that never go back: not shifted."""
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let this request wait."""
        self._clock.sleep(seconds)
