"""Work in threads of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, Self, TypeVar

_Result = TypeVar("_Result")
_Task = TypeVar("_Task")


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


MAX_WORKERS = 64
"""Enough for 600 requests a minute at 6 s each."""

MIN_WORKERS = 4
"""Enough for 60 requests a minute at 3 s each, with a file on its way to the storage."""


def worker_count(requests_per_minute: int) -> int:
    """How many threads use a budget up although each response takes up to six seconds (Little's law)."""
    return max(MIN_WORKERS, min(MAX_WORKERS, requests_per_minute // 10))


class WorkerPool(Generic[_Task]):
    """Gives each task to a free thread. `submit` waits while `waiting` tasks have none, so that they are made no sooner than they are done.

    After an error in a thread, `submit` and the end of the block raise it, and no task is begun any more. Daemon threads: they never keep
    an interrupted process from ending. At the end of the block every thread has ended, unless the block itself raised.
    """

    def __init__(self, work: Callable[[_Task], None], threads: int, *, waiting: int = 1) -> None:
        self._work = work
        self._tasks: queue.Queue[_Task | None] = queue.Queue(waiting)
        self._failures: list[BaseException] = []
        self._ended = threading.Condition()
        """Notified when a task ends."""
        self._threads = [threading.Thread(target=self._run, name="worker", daemon=True) for _ in range(threads)]

    def submit(self, task: _Task) -> None:
        """Give a task to the next free thread."""
        while True:
            self.raise_failure()
            try:
                self._tasks.put(task, timeout=0.2)
            except queue.Full:
                continue
            return

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the end of a task brings about."""
        with self._ended:
            while not condition():
                self.raise_failure()
                self._ended.wait(0.2)

    def raise_failure(self) -> None:
        """Raise the error of a thread, if there is one."""
        if self._failures:
            raise self._failures[0]

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            if self._failures:
                continue
            try:
                self._work(task)
            except BaseException as error:  # noqa: BLE001  any error is raised where the tasks come from
                self._failures.append(error)
            with self._ended:
                self._ended.notify_all()
        self._tasks.put(None)  # for the next thread

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is not None:
            self._failures.append(RuntimeError("ended"))  # no task is begun any more
            with suppress(queue.Empty):
                while True:
                    self._tasks.get_nowait()
        self._tasks.put(None)
        if kind is None:
            for thread in self._threads:
                thread.join()
            self.raise_failure()

    def join(self, seconds: float) -> None:
        """Wait for the threads after an error, so long for each: one may not react, for example during a name lookup."""
        for thread in self._threads:
            thread.join(seconds)
