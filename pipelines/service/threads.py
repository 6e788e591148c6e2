"""Work in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def in_thread(work: Callable[[], _Result], name: str, *, daemon: bool) -> Future[_Result]:
    """Begins work in a new thread; its result or its error is in the future. `daemon`: the end of the program does not wait for it."""
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  who asks for the result gets any error
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=daemon).start()
    return future
