"""The console script `bookferry`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from cli.commands import quick_completion
from cli.stop_signals import STOP_SIGNALS, StopRequest, record_signals
from pipelines.python_process import hide_pandas

YOUNG_OBJECTS = 20_000
"""New objects until Python looks for cycles among them. Imports make a million objects and no garbage: with Python's 700, a fifth of a
small backup is that search."""


def main() -> NoReturn:
    """Run one command and exit with its status.

    The imports take a second or two. A stop signal that arrives meanwhile waits until the command runs, which then reports it in one
    line. SIGTERM, which service managers send, means the same as Ctrl-C.
    """
    if quick_completion.VARIABLE in os.environ:
        _complete()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    record_signals()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
    atexit.register(_end_quickly)
    hide_pandas()
    from cli.app import app  # noqa: PLC0415  see above
    from cli.boundary import run  # noqa: PLC0415

    sys.exit(run(app, sys.argv[1:]))


def _complete() -> None:
    """Answer a shell that asks at a press of Tab, and exit, unless Typer must answer."""
    answer = quick_completion.answer(os.environ)
    if answer is not None:
        sys.stdout.write(answer.text)
        sys.stdout.flush()
        sys.exit(answer.status)


def _end_quickly() -> None:
    """Spare Python its last search for cycles, through all objects. DuckDB needs it: its binding reports what is left as leaked."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise StopRequest


if __name__ == "__main__":
    main()
