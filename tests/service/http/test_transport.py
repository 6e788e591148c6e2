"""I1: a request is charged when it leaves, once, and only if it leaves; a 429 stops everybody."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipelines.errors import TemporaryError
from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import MARGIN, PROMPT, Budget
from pipelines.service.http.retries import LEFT_AT
from pipelines.service.http.retry_after import DEFAULT_PAUSE
from pipelines.service.http.transport import BudgetTransport
from pipelines.state.local import LocalState
from tests.service.manual_clock import ManualClock
from tests.state_places import slots_taken

Step = tuple[float, str, bytes]
"""Seconds to wait, the event that httpcore then reports, and the method of its request."""

STARTED, COMPLETE = "http11.send_request_headers.started", "http11.send_request_headers.complete"


class SteppedTransport(httpx.BaseTransport):
    """Runs the given steps, each after its time, and then responds or fails."""

    def __init__(self, clock: ManualClock, steps: list[Step], outcome: httpx.Response | Exception) -> None:
        self._clock = clock
        self._steps = steps
        self._outcome = outcome

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Step by step."""
        for seconds, event, method in self._steps:
            self._clock.sleep(seconds)
            info: dict[str, Any] = {"return_value": None}
            if event.endswith("started"):
                info = {"request": httpx.Request(method.decode(), request.url)}
                info["request"].method = method  # httpcore's are bytes
            request.extensions["trace"](event, info)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


@pytest.fixture
def budget(tmp_path: Path, clock: ManualClock) -> Budget:
    """One request a minute."""
    return Budget(LocalState(tmp_path / "state.db"), "library", 1, clock)


def send(
    budget: Budget, clock: ManualClock, steps: list[Step], outcome: httpx.Response | Exception
) -> httpx.Response | Exception:
    """Sends one request through the transport."""
    ring = BudgetTransport(SteppedTransport(clock, steps, outcome), budget=budget, clock=clock)
    try:
        return ring.handle_request(httpx.Request("GET", "http://library.test/api/v2/publications"))
    except httpx.TransportError as error:
        return error


def seconds_until_free(budget: Budget, clock: ManualClock) -> float:
    """Returns how long the next request has to wait."""
    start = clock.monotonic()
    budget.acquire().release()
    return clock.monotonic() - start


TUNNEL: list[Step] = [(1.0, STARTED, b"CONNECT"), (1.0, COMPLETE, b"")]


@pytest.mark.parametrize(
    ("steps", "outcome", "charged"),
    [
        ([(3.0, STARTED, b"GET"), (2.0, COMPLETE, b"GET")], httpx.Response(200), 1),
        ([*TUNNEL, (1.0, STARTED, b"GET"), (1.0, COMPLETE, b"")], httpx.Response(200), 1),
        ([(0.0, STARTED, b"GET")], httpx.ReadError("reset"), 1),
    ],
    ids=[
        "the later moment of leaving counts",
        "a tunnel is no request",
        "answer lost",
    ],
)
def test_a_request_is_charged_once_when_it_leaves(
    budget: Budget, clock: ManualClock, steps: list[Step], outcome: httpx.Response | Exception, charged: int
) -> None:
    """I1: connecting and writing the headers take time, and the library never sees the CONNECT that asks a proxy for a tunnel to it."""
    response = send(budget, clock, steps, outcome)
    assert budget.requests == charged
    assert not isinstance(response, httpx.Response) or response.extensions[LEFT_AT] == clock.monotonic()
    assert seconds_until_free(budget, clock) == pytest.approx(charged * (60 + MARGIN + PROMPT))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "90"}, 90.0),
        ({}, DEFAULT_PAUSE),
        ({"Retry-After": "soon"}, DEFAULT_PAUSE),
        ({"Retry-After": "999999"}, 0.0),
    ],
)
def test_a_429_stops_every_request_for_the_full_time(
    tmp_path: Path, clock: ManualClock, headers: dict[str, str], seconds: float
) -> None:
    """I1: a 429 waits the full Retry-After; without one, a few seconds; an absurd one ends the run and stops no other run."""
    paused, second_budget = (Budget(LocalState(tmp_path / "state.db"), "library", 60, clock) for _ in range(2))
    send(paused, clock, [], httpx.Response(429, headers=headers))
    assert seconds_until_free(second_budget, clock) == pytest.approx(seconds)


def test_a_run_that_is_stopped_while_it_waits_keeps_no_slot(tmp_path: Path) -> None:
    """I1: a request that Ctrl-C stopped takes nothing from the next run."""
    stop = threading.Event()
    shared = Budget(LocalState(tmp_path / "state.db"), "library", 1, SystemClock(stop))
    shared.acquire().sent()
    stop.set()
    ring = BudgetTransport(httpx.MockTransport(lambda _: httpx.Response(200)), budget=shared, clock=SystemClock())
    with pytest.raises(TemporaryError, match="stopped"):
        ring.handle_request(httpx.Request("GET", "http://library.test/"))
    assert slots_taken(shared) == 1
