"""The console script `bookferry`."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

from cli.stop_signals import STOP_SIGNALS, StopRequest


def main() -> NoReturn:
    """Run one command and end with its exit status.

    A stop that arrives while we are still importing, which takes longer than a person's second thought, waits until a command runs and
    can tell it in one line. A service manager's SIGTERM is a person's Ctrl-C.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    from cli.boundary import run  # noqa: PLC0415  see above
    from cli.commands import app  # noqa: PLC0415

    sys.exit(run(app, sys.argv[1:]))


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise StopRequest


if __name__ == "__main__":
    main()
