"""The signals that end a command, and the exception that they raise in the main thread."""

from __future__ import annotations

import signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest(KeyboardInterrupt):
    """A person or a service manager stops the command.

    A class of its own: after a plain KeyboardInterrupt has passed through exec(), CPython exits with 130 in any case. `message` is set
    where a command knows better than `cli.boundary` what happened to its work.
    """

    message: str
