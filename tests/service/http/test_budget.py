"""I1: never more than `requests_per_minute` requests in any 60 seconds, at least 99 % of them used while work waits.

Time is virtual in most tests: each sleep makes it pass.
"""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipelines.errors import StorageError, TemporaryError
from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import LEARNING, LOOK_SECONDS, MARGIN, MOST_AHEAD, PROMPT, Budget
from pipelines.state.local import LocalState
from tests.service.manual_clock import ManualClock
from tests.state_places import Place, slots_taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.service.clock import Clock

LIBRARY = "https://library.example.org"
KEPT = 60 + MARGIN + PROMPT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def budget(place: Place, clock: Clock, limit: int = 1) -> Budget:
    return Budget(place.state(clock), LIBRARY, limit, clock)


def file_budget(path: Path, clock: Clock, limit: int = 1) -> Budget:
    return Budget(LocalState(path), LIBRARY, limit, clock)


def most_in_a_window(moments: list[float], window: float = 60.0) -> int:
    """Returns the largest number of requests in any closed window: it checks every window that begins with a request."""
    ordered = sorted(moments)
    return max(
        (sum(1 for moment in ordered[i:] if moment <= begin + window) for i, begin in enumerate(ordered)), default=0
    )


@dataclass
class Arrival:
    """Work that comes `gap` seconds after the previous work; its request leaves `delay` seconds after it got its slot.

    After a minute it would have to wait for another slot, which has a test of its own.
    """

    process: int
    gap: float
    delay: float
    fate: str


arrivals = st.builds(
    Arrival,
    process=st.integers(0, 2),
    gap=st.sampled_from([0.0, 0.0, 0.1, 1.0, 20.0, 59.9]) | st.floats(0, 30),
    delay=st.sampled_from([0.0, 0.3, 9.9]) | st.floats(0, 60),
    fate=st.sampled_from(["sent", "sent", "sent", "sent twice", "released", "killed"]),
)


@dataclass
class Way:
    """How long a request is under way, and its response, beyond the shortest way."""

    request_seconds: float
    response_seconds: float


ways = st.builds(
    Way,
    request_seconds=st.sampled_from([0.0, 0.0, 0.5, 5.0, 30.0]) | st.floats(0, 40),
    response_seconds=st.sampled_from([0.0, 0.0, 1.0]) | st.floats(0, 19),
)


class TestDelays:
    """What the service counts, when the way to it delays some requests more than others."""

    def walk(self, path: Path, ways: list[Way], shortest: float, limit: int = 5) -> list[float]:
        """Send a request for each way, as soon as the budget allows. Returns when they arrive."""
        clock, arrivals = ManualClock(), list[float]()
        budget = file_budget(path, clock, limit)
        for way in ways:
            permit = budget.acquire()
            permit.sent()
            took = shortest + way.request_seconds + way.response_seconds
            arrivals.append(clock.monotonic() + shortest / 2 + way.request_seconds)
            clock.at(clock.monotonic() + took, partial(permit.answered, took))
        budget.close()
        return arrivals

    @given(st.lists(ways, min_size=10, max_size=40), st.sampled_from([0.0, 0.05, 0.4, 1.0]))
    @example([*[Way(0, 0)] * 5, *[Way(5, 0)] * 5, *[Way(0, 0)] * 5], 0.1)  # a burst after one that was held up
    def test_the_service_counts_no_more_than_the_limit(self, ways: list[Way], shortest: float) -> None:
        """Once the quickest way was seen; and from the first request on, where nothing is known of it."""
        learnt = [Way(0, 0)] * (LEARNING + 1)
        with TemporaryDirectory() as folder:
            for number, earlier_ways in enumerate([learnt, []]):
                arrivals = self.walk(Path(folder) / f"{number}.db", [*earlier_ways, *ways], shortest)
                if earlier_ways or len(ways) == LEARNING:
                    assert most_in_a_window(arrivals) <= 5

    @pytest.mark.parametrize("shortest", [0.05, 0.3, 0.95])
    def test_a_long_way_costs_nothing(self, path: Path, shortest: float) -> None:
        """If it is the same for all requests: 99 % of the budget are used."""
        arrivals = self.walk(path, [Way(0, 0)] * 300, shortest)
        assert 300 / 5 * 60 / (arrivals[-1] - arrivals[0] + 60) >= 0.99


numbers = itertools.count()


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(limit=st.integers(1, 5), late=st.sampled_from([0.0, 0.05]), work=st.lists(arrivals, max_size=24))
def test_no_window_ever_holds_more_than_the_limit(place: Place, limit: int, late: float, work: list[Arrival]) -> None:
    """I1: never more than n requests in any 60-second window, whatever the arrivals, connection times, failures and deaths."""
    departures: list[float] = []
    clock = ManualClock(late=late)
    library = f"library {next(numbers)}"

    def leave() -> None:
        departures.append(clock.monotonic())

    processes = [Budget(place.state(clock), library, limit, clock) for _ in range(3)]
    for arrival in work:
        clock.sleep(arrival.gap)
        grant = processes[arrival.process].acquire()
        leaves_at = clock.monotonic() + arrival.delay
        if arrival.fate == "killed":  # later, it would have said so before its headers left
            clock.at(min(leaves_at, clock.monotonic() + PROMPT), leave)
        elif arrival.fate == "released":
            clock.at(leaves_at, grant.release)
        else:
            clock.at(leaves_at, leave)
            clock.at(leaves_at, grant.sent)
            if arrival.fate == "sent twice":
                clock.at(leaves_at + 0.1, grant.sent)
    clock.sleep(1000)
    assert most_in_a_window(departures) <= limit
    assert slots_taken(processes[0]) == 0
    for process in processes:
        process.close()


@pytest.mark.parametrize("limit", [1, 60])
def test_at_least_99_percent_are_used_while_work_waits(place: Place, limit: int) -> None:
    """I1: at least 99 % used while work waits, with wake-ups 20 ms late and headers that leave 50 ms after the slot is taken."""
    clock = ManualClock(late=0.02)
    shared = budget(place, clock, limit)
    departures: list[float] = []

    for _ in range(5 * limit + 1):
        grant = shared.acquire()
        clock.at(clock.monotonic() + 0.05, grant.sent)
        clock.at(clock.monotonic() + 0.05, lambda: departures.append(clock.monotonic()))
    clock.sleep(1)

    assert departures[5 * limit] - departures[0] <= 5 * 60 / 0.99
    assert most_in_a_window(departures[: 2 * limit + 1]) == limit


def test_a_slot_is_free_a_minute_after_its_request_left(place: Place, clock: ManualClock) -> None:
    """I1: the moment at which the request leaves counts, before or after the expected moment."""
    shared = budget(place, clock)
    for delay in (0.0, 3.0, 15.0):
        grant = shared.acquire()
        clock.sleep(delay)
        grant.sent()
        departure = clock.monotonic()
        shared.acquire().release()
        assert clock.monotonic() - departure == pytest.approx(KEPT)


class _SlowClock(ManualClock):
    """Each look takes 20 ms: a commit is never prompt."""

    def monotonic(self) -> float:
        self._now += 0.02
        return self._now


def test_a_slow_disk_holds_no_slot_longer(path: Path) -> None:
    """I1: a request that waited a minute for another slot, and then for a slow commit, is booked for a minute, not for three."""
    clock = _SlowClock()
    shared = file_budget(path, clock)
    stopped = shared.acquire()
    clock.sleep(100)
    shared.acquire().sent()
    stopped.sent()
    with closing(sqlite3.connect(path)) as db:
        slots = db.execute("SELECT free_at FROM budget_slots").fetchall()
        file_budget(path, clock)  # does not take it for one of before a boot
        assert db.execute("SELECT free_at FROM budget_slots").fetchall() == slots
    assert [free_at - clock.monotonic() for (free_at,) in slots] == [pytest.approx(KEPT, abs=0.5)]


def test_a_request_that_leaves_after_its_slot_was_given_away_waits_for_another(
    place: Place, clock: ManualClock
) -> None:
    """I1: exact at the moment of sending, even for a process that was stopped for longer than its slot stays taken."""
    shared = budget(place, clock)
    stopped = shared.acquire()
    clock.sleep(100)
    shared.acquire().sent()
    moment = clock.monotonic()
    stopped.sent()
    assert clock.monotonic() - moment == pytest.approx(KEPT)
    assert slots_taken(shared) == 1


def test_release_gives_the_slot_back_unless_the_request_was_sent(place: Place, clock: ManualClock) -> None:
    """I1: a request that never left costs nothing; one that left cannot be taken back."""
    shared = budget(place, clock, 2)
    shared.acquire().release()
    assert slots_taken(shared) == 0
    grant = shared.acquire()
    grant.sent()
    grant.release()
    assert slots_taken(shared) == 1


def test_a_pause_holds_everybody_back_in_full(place: Place, clock: ManualClock) -> None:
    """I1: a 429 waits the full Retry-After, in every process; a later, shorter one does not shorten it."""
    paused, second_budget = budget(place, clock, 60), budget(place, clock, 60)
    start = clock.monotonic()
    paused.pause(90)
    paused.pause(5)
    second_budget.pause(-3)
    Budget(place.state(clock), "https://other.example.org", 1, clock).acquire()
    assert clock.monotonic() == start, "the limit and the pause belong to one library"
    second_budget.acquire()
    assert clock.monotonic() - start == pytest.approx(90)
    for seconds in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="never end"):
            paused.pause(seconds)
    with pytest.raises(ValueError, match="at least 1"):
        budget(place, clock, 0)


def test_a_pause_applies_to_waiting_threads(place: Place, clock: ManualClock) -> None:
    """I1: a pause that begins while others wait applies to them, too."""
    shared = budget(place, clock)
    shared.acquire().sent()
    start = clock.monotonic()
    clock.at(start + 50, lambda: shared.pause(30))
    shared.acquire()
    assert clock.monotonic() - start == pytest.approx(80)


def test_an_interrupted_wait_takes_no_slot(place: Place, clock: ManualClock) -> None:
    """I1: a caller that stops waiting, for whatever reason, takes no slot from the others."""
    shared, impatient = budget(place, clock), budget(place, clock)
    shared.acquire().sent()
    start = clock.monotonic()

    def interrupt() -> None:
        raise KeyboardInterrupt

    clock.at(start + 60.1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        impatient.acquire()
    shared.acquire()
    assert clock.monotonic() - start == pytest.approx(KEPT)


def test_after_a_boot_no_slot_is_taken_for_hours(path: Path) -> None:
    """I1: the clock starts anew at boot. Earlier requests count as sent just now, once, and a pause begins again."""
    old_clock = ManualClock(1_000_000.0)
    shared = file_budget(path, old_clock, 2)
    shared.acquire().sent()
    shared.acquire().sent()
    shared.close()

    new_clock = ManualClock(20.0)
    file_budget(path, new_clock, 2).acquire()
    assert new_clock.monotonic() == pytest.approx(20 + KEPT - PROMPT)

    file_budget(path, old_clock).pause(100)
    rebooted = ManualClock(30.0)
    file_budget(path, rebooted).acquire()
    assert 130 <= rebooted.monotonic() <= 130 + MOST_AHEAD + KEPT


def test_waits_are_reported_once_and_say_who_asks_for_them(place: Place, clock: ManualClock) -> None:
    """I1: the service that pauses, or our own limit; and again when the wait becomes longer."""
    waits: list[float] = []
    pauses: list[float] = []
    shared = Budget(place.state(clock), LIBRARY, 1, clock, on_wait=waits.append, on_pause=pauses.append)
    shared.pause(40)
    shared.acquire().sent()
    assert (waits, pauses) == ([], [pytest.approx(40)])
    clock.at(clock.monotonic() + 30, lambda: shared.pause(60))
    shared.acquire()
    assert waits == [pytest.approx(KEPT)]
    assert pauses == [pytest.approx(40), pytest.approx(60, abs=LOOK_SECONDS)]


@pytest.fixture
def interrupt_soon() -> Iterator[Callable[[], None]]:
    """Sends the process a SIGINT a little later."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    yield timer.start
    timer.join()
    signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize("behind_a_thread", [False, True])
def test_a_signal_ends_the_wait(place: Place, interrupt_soon: Callable[[], None], behind_a_thread: bool) -> None:
    """Ctrl-C ends the wait at once, also if another thread of the process is ahead in the queue."""
    stop = threading.Event()
    shared = Budget(place.state(SystemClock(stop)), LIBRARY, 1, SystemClock(stop))
    grant = shared.acquire()

    def wait_in_a_thread() -> None:
        with pytest.raises(TemporaryError, match="run the same command again"):
            shared.acquire()

    thread = threading.Thread(target=wait_in_a_thread)
    if behind_a_thread:
        thread.start()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  the signal may come early
        interrupt_soon()
        shared.acquire()
    stop.set()
    if behind_a_thread:
        thread.join()
    grant.release()
    shared.acquire().release()
    assert slots_taken(shared) == 0


def output_of(script: str, path: Path | str) -> tuple[str, str]:
    """Runs a Python process; returns its standard output and standard error."""
    command: list[str | Path] = [sys.executable, "-c", script, path]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    return process.stdout, process.stderr


@pytest.mark.long
def test_several_processes_can_make_the_file_at_once(tmp_path: Path) -> None:
    """Runs that start together must not fail because SQLite lets only one of them turn WAL on."""
    script = """if True:
        import multiprocessing, os, pathlib, sys
        from pipelines.service.http.budget import Budget
        from pipelines.state.local import LocalState
        together = multiprocessing.get_context("fork").Barrier(4)
        children = []
        for _ in range(4):
            if (child := os.fork()) == 0:
                for number in range(60):
                    together.wait(200)
                    Budget(LocalState(pathlib.Path(sys.argv[1], f"{number}.db")), "library", 1).close()
                os._exit(0)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0, 0]
    """
    assert output_of(script, tmp_path) == ("", "")


def test_a_full_disk_is_a_storage_error_and_takes_no_slot(path: Path, clock: ManualClock) -> None:
    shared = file_budget(path, clock, 10_000)
    shared._store._connection.execute("PRAGMA max_page_count = 1")  # type: ignore[union-attr]
    slots = 0
    with pytest.raises(StorageError, match=r"full.*free some space"):  # noqa: PT012  it fails when the pages it has are used up
        while True:
            shared.acquire()
            slots += 1
    assert slots_taken(shared) == slots
