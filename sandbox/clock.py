"""The only place that reads the time. Everything else gets a clock, so that a test can set the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Time for the service."""

    def now(self) -> float:
        """Returns the seconds since 1970."""

    def monotonic(self) -> float:
        """Returns seconds that never go back; windows and limits use them."""

    def sleep(self, seconds: float) -> None:
        """Delays this request."""


class SystemClock:
    """The time of the machine."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


class ShiftedClock:
    """A clock ``ahead`` of another by some seconds. It shifts the time of day, not durations."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = 0.0

    def now(self) -> float:
        """Returns the shifted seconds since 1970."""
        return self._clock.now() + self.ahead

    def monotonic(self) -> float:
        """Returns seconds that never go back; they are not shifted."""
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Delays this request."""
        self._clock.sleep(seconds)
