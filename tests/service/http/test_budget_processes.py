"""I1 with real processes, a real socket and real time; the service that receives the requests counts them."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

import pytest

from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import MARGIN, Budget
from tests.forks import CONTEXT, start
from tests.service.scripted import Answer, Received, ScriptedServer
from tests.state_places import Place

pytestmark = pytest.mark.long


if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.synchronize import Barrier

LIMIT = 48
WINDOW = 1.8
"""Seconds; scaled down from 60."""
CYCLE = WINDOW + MARGIN
PROCESSES = 4
LATENCY = 0.02


class _Service(ScriptedServer):
    """Records when each request arrived, and from which process."""

    def __init__(self) -> None:
        super().__init__(self.arrived)
        self._arrivals: list[tuple[float, str]] = []
        self._more = threading.Condition()

    def arrived(self, request: Received) -> Answer:
        with self._more:
            self._arrivals.append((time.monotonic(), request.path))
            self._more.notify_all()
        time.sleep(LATENCY)
        return Answer(status=204)

    def first(self, count: int) -> list[tuple[float, str]]:
        """Wait for the first `count` arrivals and return them."""
        with self._more:
            assert self._more.wait_for(lambda: len(self._arrivals) >= count, timeout=100 * CYCLE), len(self._arrivals)
            return self._arrivals[:count]


def send_for_ever(place: Place, port: int, name: str, together: Barrier) -> None:
    """The work of each process when all have started: one request after the other, as fast as the budget allows."""
    budget = Budget(place.state(clock := SystemClock()), "library", LIMIT, clock, window=WINDOW)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.connect()
    together.wait()
    while True:
        grant = budget.acquire()
        connection.request("GET", name)
        grant.sent()
        connection.getresponse().read()


@pytest.fixture
def service() -> Iterator[_Service]:
    with _Service() as server:
        yield server


@pytest.fixture
def processes(service: _Service, place: Place) -> Iterator[Sequence[BaseProcess]]:
    together = CONTEXT.Barrier(PROCESSES)
    started = [start(send_for_ever, place, service.port, f"/{number}", together) for number in range(PROCESSES)]
    yield started
    for process in started:
        process.kill()
        process.join()


def test_four_processes_share_one_budget_and_one_is_killed(service: _Service, processes: Sequence[BaseProcess]) -> None:
    """I1: never more than the limit as the service counts, all of it used, by all processes; a kill stalls none of them.

    The exact figures (any window, 99 %, equal shares) are proved on an undisturbed clock, in test_budget.py. Here the clock is
    that of a machine that may do much else: a service that hears of a request half a second late sees two of them closer together.
    """
    before_kill = 3 * LIMIT
    service.first(before_kill)
    processes[0].kill()
    arrivals = service.first(before_kill + 2 * LIMIT)
    moments = [moment for moment, _ in arrivals]

    # LIMIT slots, each free again a window and its margin later: over four windows the margins are patience enough for late news.
    assert moments[4 * LIMIT] - moments[0] > 4 * WINDOW
    assert moments[3 * LIMIT] - moments[0] > 3 * WINDOW - MARGIN
    assert moments[-1] - moments[0] < 10 * 5 * CYCLE, "most of it is used"

    assert set(Counter(process for _, process in arrivals[LIMIT:before_kill])) == {"/0", "/1", "/2", "/3"}
    survivors = Counter(process for _, process in arrivals[-LIMIT:])
    assert set(survivors) == {"/1", "/2", "/3"}
