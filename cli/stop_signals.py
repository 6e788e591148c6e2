"""The signals that end a command, and the exception that they raise in the main thread."""

from __future__ import annotations

import signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest(KeyboardInterrupt):
    """Somebody asked us to end. Not KeyboardInterrupt itself: once that has passed through exec(), CPython ends with 130 in any case.

    `told`: what to tell, where a command knows better than `boundary` what became of its work.
    """

    told: str
