"""The clock that every wait and every timestamp uses, so that a test can pass hours at once."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol

from pipelines.errors import TemporaryError


class Clock(Protocol):
    """The two times, and waiting. Safe to use from several threads."""

    def monotonic(self) -> float:
        """Return seconds since a moment that all processes on this machine share; never set back, but restarted at boot."""
        ...

    def now(self) -> datetime:
        """Return the time of day in UTC, which a person or NTP may set forward or back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` or slightly later; raise the exceptions of a signal handler (KeyboardInterrupt)."""
        ...


class SystemClock:
    """The machine's clock.

    Setting `interrupted` ends every sleep on this clock with `TemporaryError`: a signal reaches the main thread only, and the other threads
    of a stopped run must not wait any longer.
    """

    def __init__(self, interrupted: threading.Event | None = None) -> None:
        self._interrupted = interrupted or threading.Event()

    def monotonic(self) -> float:
        """Return CLOCK_MONOTONIC in seconds."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait; raise `TemporaryError` as soon as `interrupted` is set."""
        if self._interrupted.wait(seconds):
            raise TemporaryError("The run was stopped while it waited. Nothing was lost: run the same command again.")
