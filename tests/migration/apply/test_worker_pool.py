"""Threads that write at once: what one of them raises ends all, and the end always comes."""

from __future__ import annotations

import threading

import pytest

from pipelines.migration.apply.worker_pool import WorkerPool


@pytest.mark.timeout(60)
def test_after_a_failure_every_thread_ends_also_those_that_were_busy_when_they_were_told() -> None:
    gate = threading.Event()

    def work(task: int) -> None:
        if task == 0:
            raise ValueError("the first of many")
        gate.wait()

    def write() -> None:
        with WorkerPool(work, 4) as crew:
            for task in (1, 2, 3, 0):
                crew.submit(task)
            threading.Timer(0.5, gate.set).start()  # later than a crew that gives up would do so

    with pytest.raises(ValueError, match="first of many"):
        write()
