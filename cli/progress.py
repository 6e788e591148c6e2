"""Progress of a run on stderr: a bar on a terminal, elsewhere a line from time to time."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from itertools import chain, repeat
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.output import plain_console, say
from pipelines.humanize import counted, duration

if TYPE_CHECKING:
    from pipelines.backup.read import Progress
    from pipelines.service.client import Waiting

LINE_SECONDS = (10, 10, 10, 30)
"""Without a terminal: seconds before each of the first lines. Then one line a minute, so that a long run does not fill a log."""

STILL_SECONDS = 1.0
"""A wait is printed after so long without progress. Shorter waits are the normal work of the budget."""

SHOWN_WAIT_SECONDS = 3.0
"""Shorter waits are never printed."""


def say_wait(why: Waiting) -> None:
    """Tell a person of a wait, for commands without progress."""
    if why.seconds >= SHOWN_WAIT_SECONDS:
        say(f"waiting {duration(why.seconds)}: {why.reason}")


class ProgressDisplay:
    """Shows progress and waits on stderr until its block ends. Its methods may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at: Progress | None = None
        self._began = self._moved = clock()
        self._ends: float | None = None
        self._waits_until, self._reason = self._began, ""

    def __enter__(self) -> Self:
        view = _Bar if sys.stderr.isatty() else _Lines  # $FORCE_COLOR makes Rich take a log for a terminal
        self._view = view(self, plain_console(sys.stderr))
        self._view.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._view.stop()

    def progress(self, at: Progress) -> None:
        """Record that a page was read or a file was tried."""
        self._moved = self._clock()
        if self._at is None or self._at.resource != at.resource:
            self._began, self._ends = self._moved, None
            if self._at is not None:
                requests = counted(self._at.requests, "request")
                self._view.done(f"{self._at.resource}: {self._at.records:,} {self._at.done}, {requests}")
        self._at = at
        if at.expected is not None:
            at_our_rate = (at.expected - at.records) / max(1.0, self._rate(at))
            self._ends = self._moved + max(at.seconds_left, at_our_rate)

    def waiting(self, why: Waiting) -> None:
        """Record a wait. If several threads wait, the newest reason is printed."""
        if why.seconds >= SHOWN_WAIT_SECONDS:
            self._waits_until, self._reason = self._clock() + why.seconds, why.reason

    @property
    def at(self) -> Progress | None:
        """The newest progress; `None` at the start."""
        return self._at

    @property
    def subject(self) -> str:
        """The resource in progress."""
        return self._at.resource if self._at is not None else "starting"

    @property
    def numbers(self) -> str:
        """Records, records a second, requests, and the time left."""
        at = self._at
        if at is None:
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


class _Bar:
    """For a terminal: one line that is updated in place, and a second one during a wait."""

    def __init__(self, display: ProgressDisplay, console: Console) -> None:
        self._display = display
        self._live = Live(
            console=console, get_renderable=self._render, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self.start, self.stop = self._live.start, self._live.stop
        self.done = self._live.console.print

    def _render(self) -> RenderableType:
        at = self._display.at
        bar = ProgressBar(
            total=at.expected if at is not None else None,
            completed=at.records if at is not None else 0,
            pulse=at is None or at.expected is None,
        )
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(no_wrap=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True)
        line.add_row(self._display.subject, bar, self._display.numbers)
        pause = self._display.pause
        return Group(line, Text(pause, "yellow")) if pause else line


class _Lines:
    """For a log: a line from time to time."""

    def __init__(self, display: ProgressDisplay, console: Console) -> None:
        self._display = display
        self._console = console
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._print_lines, name="progress", daemon=True)
        self.start = self._thread.start
        self.done = console.print

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _print_lines(self) -> None:
        for pause in chain(LINE_SECONDS, repeat(60)):
            if self._over.wait(pause):
                return
            state = ", ".join(filter(None, (self._display.numbers, self._display.pause)))
            self._console.print(": ".join(filter(None, (self._display.subject, state))))
