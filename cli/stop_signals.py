"""The signals that end a command, the exception that they raise in the main thread, and a record of those that arrived."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest(KeyboardInterrupt):
    """A person or a service manager stops the command.

    A class of its own: after a plain KeyboardInterrupt has passed through exec(), CPython exits with 130 in any case. `message` is set
    where the code knows better than the command's own text what happened to its work.
    """

    message: str


class SignalRecord:
    """The stop signals that have arrived in this process, oldest first.

    Dagster loses a signal that arrives while it exchanges signal handlers around a step, and its exception does not say which one came.
    Python writes the number of each signal to the wakeup descriptor, whichever handler is installed.
    """

    def __init__(self) -> None:
        self._received, sent = os.pipe()  # open until the process ends
        os.set_blocking(self._received, False)
        os.set_blocking(sent, False)
        self._numbers: list[int] = []
        signal.set_wakeup_fd(sent, warn_on_full_buffer=False)

    def numbers(self) -> list[int]:
        """Return the stop signals so far."""
        with suppress(BlockingIOError):
            self._numbers += [number for number in os.read(self._received, 4096) if number in STOP_SIGNALS]
        return self._numbers


_records: list[SignalRecord] = []


def record_signals() -> None:
    """Record the stop signals of this process from now on. `main` calls it once."""
    _records.append(SignalRecord())


def received_signal() -> int | None:
    """The first stop signal of this process; None if there was none, or if nobody records them."""
    return next((number for record in _records for number in record.numbers()), None)


DAGSTERS_STOP = "DagsterExecutionInterruptedError"
"""What Dagster raises for a stop signal. To import Dagster for its class would take a second."""

AGAIN = 0.01
"""Seconds until a swallowed stop is delivered again. What swallowed it has ended by then."""


def deliver_swallowed_stops() -> None:
    """Deliver a stop once more that Python swallowed, instead of printing its traceback.

    Python swallows what is raised in a finalizer or in the callback of a weak reference, of which each import has one. `main` calls this
    once, after `record_signals`.
    """
    before = sys.unraisablehook

    def hook(swallowed: UnraisableHookArgs, /) -> None:
        is_stop = issubclass(swallowed.exc_type, KeyboardInterrupt) or swallowed.exc_type.__name__ == DAGSTERS_STOP
        number = received_signal() if is_stop else None
        if number is None:
            before(swallowed)
        else:
            _thread.start_new_thread(
                _deliver, (number,)
            )  # `threading` would take locks that what was interrupted may hold

    sys.unraisablehook = hook


def _deliver(number: int) -> None:
    time.sleep(AGAIN)
    signal.pthread_kill(threading.main_thread().ident or 0, number)
