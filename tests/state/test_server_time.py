"""I1 over several machines: the database's clock may be set, and the way to it may be slow."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import MARGIN, PROMPT, Budget
from pipelines.state.postgres import PostgresStore
from tests.service.http.test_budget import KEPT, LIBRARY, most_in_a_window
from tests.service.manual_clock import ManualClock
from tests.state.proxy import Proxy
from tests.state_places import Place, slots_taken

HOUR = 3600.0


class ServerClock:
    """The server's clock, which is the machines' clock until somebody sets it."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.set_by = 0.0

    def __call__(self) -> float:
        """Return the time of day."""
        return 1_700_000_000 + self._clock.monotonic() + self.set_by


class Machine(ManualClock):
    """The clock of a machine that was started at another time than the one of the test."""

    def __init__(self, clock: ManualClock, started: float) -> None:
        super().__init__()
        self._clock = clock
        self._started = started

    def monotonic(self) -> float:
        """Return the seconds since its start."""
        return self._clock.monotonic() + self._started

    def sleep(self, seconds: float) -> None:
        """Let the seconds pass, for everybody."""
        self._clock.sleep(seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server_clock(clock: ManualClock) -> ServerClock:
    return ServerClock(clock)


@pytest.fixture
def on(shared_place: Place, clock: ManualClock, server_clock: ServerClock) -> Callable[..., Budget]:
    """Opens the budget as a process of a machine."""

    def open_budget(machine: str, limit: int = 2, library: str = LIBRARY) -> Budget:
        own_clock = Machine(clock, 1000.0 * len(machine))
        return Budget(
            shared_place.state(own_clock, server_clock=server_clock, machine=machine), library, limit, own_clock
        )

    return open_budget


@pytest.mark.parametrize(("machine", "is_known"), [("one", True), ("another", True), ("another", False)])
@pytest.mark.parametrize("step", [*(pytest.param(step, marks=pytest.mark.long) for step in (HOUR, 45.0, -HOUR)), 5.0])
def test_a_server_whose_clock_is_set_frees_nothing_early_and_keeps_nothing_for_hours(
    on: Callable[..., Budget],
    clock: ManualClock,
    server_clock: ServerClock,
    *,
    machine: str,
    is_known: bool,
    step: float,
) -> None:
    """Whoever looks first after the step: the same process, another one of the machine, another machine, one that was never there."""
    first = on("one")
    if is_known:
        slots_taken(on(machine))
    for _ in range(2):
        first.acquire().sent()
    sent = clock.monotonic()
    clock.sleep(1)
    server_clock.set_by = step
    on(machine).acquire()
    assert KEPT - 0.01 <= clock.monotonic() - sent <= KEPT + 2
    slots_taken(first)


def test_after_a_failover_nothing_is_granted_for_a_window(
    on: Callable[..., Budget], shared_place: Place, clock: ManualClock
) -> None:
    """What the new server was not told of may have been sent just now: as many requests as a window takes."""
    budget = on("one")
    shared_place.rows("UPDATE budget_clocks SET server = 'another'")
    failed_over = clock.monotonic()
    budget.acquire()
    assert clock.monotonic() - failed_over == pytest.approx(KEPT - PROMPT)
    budget.acquire()
    assert clock.monotonic() - failed_over == pytest.approx(KEPT - PROMPT), "once only"


numbers = iter(range(10**9))

requests = st.tuples(
    st.integers(0, 3), st.floats(0, 40), st.floats(0, 12), st.sampled_from([0.0, 0.0, 0.0, HOUR, 31.7, -47.3, -3511.9])
)


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(limit=st.integers(1, 3), work=st.lists(requests, max_size=25))
def test_no_window_holds_more_whatever_the_clock_does(
    one_shared_place: Place, limit: int, work: list[tuple[int, float, float, float]]
) -> None:
    """I1: four processes on three machines, one of which has no row at first, and a clock that jumps."""
    clock = ManualClock()
    server_clock = ServerClock(clock)
    library, departures = f"library {next(numbers)}", list[float]()
    budgets: dict[int, Budget] = {}
    try:
        for process, gap, delay, step in work:
            clock.sleep(gap)
            server_clock.set_by += step
            own_clock = Machine(clock, 1000.0 * (process // 2))
            if process not in budgets:
                name = f"machine {process // 2 + process // 3}"
                state = one_shared_place.state(own_clock, server_clock=server_clock, machine=name)
                budgets[process] = Budget(state, library, limit, own_clock)
            permit = budgets[process].acquire()
            clock.at(clock.monotonic() + delay, permit.sent)
            clock.at(clock.monotonic() + delay, lambda: departures.append(clock.monotonic()))
        clock.sleep(1000)
    finally:
        for budget in budgets.values():
            budget.close()
    assert most_in_a_window(departures) <= limit


def test_a_charge_whose_commit_was_slow_is_repeated(shared_place: Place) -> None:
    """The request leaves after the commit's way back: its slot stays taken for a window from then."""
    clock = SystemClock()
    with Proxy(shared_place.address) as proxy:
        budget = Budget(Place(None, proxy.address).state(clock), LIBRARY, 1, clock)
        permit = budget.acquire()
        proxy.delays[:] = [0.7]
        permit.sent()
        sent = time.time()
        budget.close()
    assert proxy.delays == []
    [(free_at,)] = shared_place.rows("SELECT free_at FROM budget_slots")
    assert free_at >= sent + KEPT - PostgresStore.allowance
    assert PostgresStore.allowance <= MARGIN / 2
