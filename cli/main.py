"""The console script `bookferry`."""

from __future__ import annotations

import io
import signal
import sys
from types import FrameType
from typing import NoReturn

from cli.stop_signals import STOP_SIGNALS, StopRequest


def main() -> NoReturn:
    """Run one command and exit with its status.

    The imports take up to a second. A stop signal that arrives meanwhile waits until the command runs, which then reports it in one
    line. SIGTERM, which service managers send, means the same as Ctrl-C.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as on stderr: what the terminal cannot show is escaped
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    from cli.app import app  # noqa: PLC0415
    from cli.boundary import run  # noqa: PLC0415

    sys.exit(run(app, sys.argv[1:]))


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    raise StopRequest(number)


if __name__ == "__main__":
    main()
