"""The signals that end a command, and the exception that they raise in the main thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest(KeyboardInterrupt):
    """A person or a service manager stops the command, by the signal `number`.

    A class of its own: after a plain KeyboardInterrupt has passed through exec(), CPython exits with 130 in any case. `message` is set
    where the code knows better than the command's own text what happened to its work.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.message = ""


@contextmanager
def stops_delivered() -> Iterator[None]:
    """SIGINT and SIGTERM, which `main` blocks, arrive in this block only: the work is finished after it.

    A signal that was ignored at the start stays blocked, such as the terminal's Ctrl-C for background jobs of a script.
    """
    numbers = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
