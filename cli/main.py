"""The console script `bookferry`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from cli.stop_signals import STOP_SIGNALS, StopRequest, deliver_swallowed_stops, record_signals

COMPLETION = "_BOOKFERRY_COMPLETE"
"""The variable of a shell that asks what can follow."""

YOUNG_OBJECTS = 20_000
"""New objects until Python looks for cycles among them: with Python's 700, the search is a tenth of a small backup."""


def main() -> NoReturn:
    """Run one command and exit with its status.

    The imports take a second or two. A stop signal that arrives meanwhile waits until the command runs, which then reports it in one
    line. SIGTERM, which service managers send, means the same as Ctrl-C.
    """
    if COMPLETION in os.environ:
        _complete()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    record_signals()
    deliver_swallowed_stops()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
    from pipelines.python_process import hide_unused, importing  # noqa: PLC0415  see above

    hide_unused()
    with importing():
        from cli.app import app  # noqa: PLC0415
        from cli.boundary import run  # noqa: PLC0415

    _end(run(app, sys.argv[1:]))


def _complete() -> None:
    """Answer a shell that asks at a press of Tab, and exit, unless Typer must answer."""
    from cli.commands import quick_completion  # noqa: PLC0415  other commands do not need it

    answer = quick_completion.answer(os.environ[COMPLETION], os.environ)
    if answer is not None:
        sys.stdout.write(answer.text)
        sys.stdout.flush()
        sys.exit(answer.status)


def _end(status: int) -> NoReturn:
    """End as Python ends a process, but leave its memory to the system: to take apart what it imported is a fifth of a small backup.

    `multiprocessing` ends its processes in the same way.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(status)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise StopRequest


if __name__ == "__main__":
    main()
