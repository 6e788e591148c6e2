"""Progress of a run on stderr: a bar on a terminal, elsewhere a line from time to time."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from itertools import chain, repeat
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.output import plain_console, say
from pipelines.backup.read import Progress
from pipelines.humanize import counted, duration
from pipelines.service.client import Waiting

LINE_SECONDS = (10, 10, 10, 30)
"""Without a terminal: seconds before each of the first lines. Then one line a minute, so that a long run does not fill a log."""

STILL_SECONDS = 1.0
"""A wait is printed after so long without progress. Shorter waits are the normal work of the budget."""

SHOWN_WAIT_SECONDS = 3.0
"""Shorter waits are never printed."""

_START = Progress("starting", 0, None, 0)


def say_wait(why: Waiting) -> None:
    """Tell a person of a wait, for commands without progress."""
    if why.seconds >= SHOWN_WAIT_SECONDS:
        say(f"waiting {duration(why.seconds)}: {why.reason}")


class ProgressDisplay:
    """Shows progress and waits on stderr until its block ends. Its methods may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = _START
        self._began = self._moved = clock()
        self._ends: float | None = None
        self._waits_until, self._reason = self._began, ""
        self._console = plain_console(sys.stderr)
        self._bar = Live(
            console=self._console,
            get_renderable=self._drawn,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._has_bar = sys.stderr.isatty()  # $FORCE_COLOR makes Rich take a log for a terminal
        self._pauses = chain(LINE_SECONDS, repeat(60))
        self._next_line = self._began + next(self._pauses)

    def __enter__(self) -> Self:
        if self._has_bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def progress(self, at: Progress) -> None:
        """Record that a page was read or a file was tried."""
        self._moved = self._clock()
        if self._at.resource != at.resource:
            self._began, self._ends = self._moved, None
            if self._at is not _START:
                requests = counted(self._at.requests, "request")
                self._console.print(f"{self._at.resource}: {self._at.records:,} {self._at.done}, {requests}")
        self._at = at
        if at.expected is not None:
            at_our_rate = (at.expected - at.records) / max(1.0, self._rate(at))
            self._ends = self._moved + max(at.seconds_left, at_our_rate)
        self._print_line()

    def waiting(self, why: Waiting) -> None:
        """Record a wait. If several threads wait, the newest reason is printed."""
        if why.seconds >= SHOWN_WAIT_SECONDS:
            self._waits_until, self._reason = self._clock() + why.seconds, why.reason
            self._print_line(f"waiting {duration(math.ceil(why.seconds))}: {why.reason}", until=self._waits_until)

    @property
    def numbers(self) -> str:
        """Records, records a second, requests, and the time left."""
        at = self._at
        if at is _START:
            return ""
        if at.expected is not None and at.records >= at.expected:
            return f"{at.records:,} {at.done}, {counted(at.requests, 'request')}; {at.afterwards}"
        of = f" of {at.expected:,}" if at.expected is not None else ""
        return f"{at.records:,}{of}, {self._rate(at):,.0f}/s, {counted(at.requests, 'request')}{self._time_left()}"

    @property
    def pause(self) -> str:
        """The reason for a wait; empty while there is progress."""
        now = self._clock()
        if self._waits_until <= now or now - self._moved < STILL_SECONDS:
            return ""
        return f"waiting {duration(math.ceil(self._waits_until - now))}: {self._reason}"

    def _rate(self, at: Progress) -> float:
        return at.records / max(1.0, self._clock() - self._began)

    def _time_left(self) -> str:
        if self._ends is None:
            return ""
        seconds = max(self._ends, self._waits_until) - self._clock()
        return f", {duration(seconds)} left" if seconds >= 1 else ""

    def _drawn(self) -> RenderableType:
        """For a terminal: one line that is updated in place, and a second one during a wait."""
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(no_wrap=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True)
        bar = ProgressBar(self._at.expected, self._at.records, pulse=self._at.expected is None)
        line.add_row(self._at.resource, bar, self.numbers)
        return Group(line, Text(self.pause, "yellow")) if self.pause else line

    def _print_line(self, pause: str = "", until: float = 0.0) -> None:
        """For a log: a line from time to time; before a wait, if its end comes too late for the next one."""
        now = self._clock()
        if not self._has_bar and max(now, until) >= self._next_line:
            self._next_line = now + next(self._pauses)
            state = ", ".join(filter(None, (self.numbers, pause)))
            self._console.print(": ".join(filter(None, (self._at.resource, state))))
