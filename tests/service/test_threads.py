"""Threads that write at once: an error of one thread ends all, and the pool always ends."""

from __future__ import annotations

import threading

import pytest

from pipelines.service.threads import WorkerPool


@pytest.mark.timeout(60)
def test_after_an_error_every_thread_ends_even_one_that_was_busy_then() -> None:
    gate = threading.Event()

    def work(task: int) -> None:
        if task == 0:
            raise ValueError("the first of many")
        gate.wait()

    def write() -> None:
        with WorkerPool(work, 4) as pool:
            for task in (1, 2, 3, 0):
                pool.submit(task)
            threading.Timer(0.5, gate.set).start()  # longer than a pool waits for a free thread

    with pytest.raises(ValueError, match="first of many"):
        write()
