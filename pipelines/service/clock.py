"""The clock that every wait and every timestamp uses, so that a test can pass hours at once."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol

from pipelines.errors import TemporaryError
from pipelines.state.store import Ticking


class Clock(Ticking, Protocol):
    """The two times, and waiting. Safe to use from several threads. `sleep` raises the exceptions of signal handlers."""

    def now(self) -> datetime:
        """Return the time of day in UTC, which a person or NTP may set forward or back."""
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
