"""A lease among machines: whoever loses it, or the database, sends no further request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from pipelines.errors import StorageError, TenantBusyError
from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import Budget
from pipelines.state.postgres import PostgresState
from pipelines.state.store import State
from tests.state.proxy import Proxy
from tests.state_places import Place

DATA = "s3://bucket/data"
CLOCK = SystemClock()

HOLDER = """
import sys
from pipelines.errors import BookferryError
from pipelines.service.http.budget import Budget
from pipelines.state.postgres import PostgresState

state = PostgresState(sys.argv[1], idle_seconds=1, beat_seconds=0.2)
with state.lease("old", "s3://bucket/data"):
    budget = Budget(state, "library", 100)
    permit = budget.acquire()
    print("holds", flush=True)
    sys.stdin.readline()
    for try_it in (permit.sent, budget.acquire):
        try:
            try_it()
        except BookferryError as error:
            print(f"{type(error).__name__} {error}", flush=True)
        else:
            print("sends", flush=True)
"""


def until(found: Callable[[], bool]) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Stopped(BaseException):
    """What Dagster raises in the main thread when a run is terminated: no KeyboardInterrupt, and no Exception."""


def test_a_run_that_is_stopped_within_a_statement_keeps_its_lease_until_it_has_cleaned_up(shared_place: Place) -> None:
    """The stop is what its caller sees; the session goes on, so that a slot is given back and the last pages are copied."""
    state = shared_place.state(CLOCK)
    assert isinstance(state, PostgresState)

    def stop(_number: int, _frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with state.lease("old", DATA):
            permit = Budget(state, "library", 100).acquire()
            store = state.open(CLOCK)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Stopped), store.transaction() as db:
                db.execute("SELECT pg_sleep(60)")
            permit.release()
            assert Budget(state, "library", 100).used() == 0
            assert state.fence("old", DATA) > 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_free(state: State, tenant: str = "old") -> bool:
    """Whether the lease can be taken."""
    try:
        with state.lease(tenant, DATA):
            return True
    except TenantBusyError:
        return False


@pytest.fixture
def state(shared_place: Place) -> State:
    return shared_place.state(CLOCK)


@pytest.fixture
def holder(shared_place: Place) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease and has a slot; a line of input makes it send."""
    command = [sys.executable, "-c", HOLDER, shared_place.address]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        yield process
        process.kill()


def said_at_last(holder: subprocess.Popen[str]) -> list[str]:
    """What it says when it tries to send."""
    out, _ = holder.communicate("go on\n", timeout=60)
    return out.splitlines()


@pytest.mark.long
def test_a_second_machine_is_refused_and_told_who_works(holder: subprocess.Popen[str], state: State) -> None:
    """Other tenants, and the same one of other data, are free. The lease of a killed process is free at once."""
    with pytest.raises(TenantBusyError, match=rf"at work on 'old'.*process {holder.pid} on .* since 20"):
        state.lease("old", DATA).__enter__()
    assert (state.is_leased("old", DATA), state.is_leased("new", DATA)) == (True, False)
    with state.lease("new", DATA), state.lease("old", "s3://another"):
        pass
    holder.kill()
    until(lambda: is_free(state))


@pytest.mark.long
def test_a_holder_that_is_silent_for_long_keeps_its_lease(holder: subprocess.Popen[str], shared_place: Place) -> None:
    """It is at work on something else; a thread speaks for it. Three times its silence pass, by the server's clock."""
    assert shared_place.rows("SELECT pg_sleep(3)")
    assert not is_free(shared_place.state(CLOCK))
    assert said_at_last(holder) == ["sends", "sends"]


@pytest.mark.long
def test_a_holder_that_was_stopped_sends_nothing_after_another_took_over(
    holder: subprocess.Popen[str], state: State, shared_place: Place
) -> None:
    """SIGSTOP, and SIGCONT when another run is at work: neither what was granted before leaves, nor anything new."""
    os.kill(holder.pid, signal.SIGSTOP)
    until(lambda: is_free(state))
    with state.lease("old", DATA):
        os.kill(holder.pid, signal.SIGCONT)
        said = said_at_last(holder)
    assert len(said) == 2
    for line in said:
        assert line.startswith("StorageError The session with the state in postgresql://")
        assert "lease" in line
        assert "Nothing further is sent. Run the same command again." in line
    assert shared_place.rows("SELECT count(*) FROM budget_slots") == [(1,)]


@pytest.mark.long
def test_who_is_cut_off_sends_nothing_and_may_begin_anew(shared_place: Place, state: State) -> None:
    """The network goes while a run holds a lease; without a lease, a new session is opened without a word."""
    with Proxy(shared_place.address) as proxy:
        cut_off = PostgresState(proxy.address)
        budget = Budget(cut_off, "library", 100)
        with cut_off.lease("old", DATA):
            permit = budget.acquire()
            proxy.cut()
            for send in (permit.sent, budget.acquire, permit.sent):
                with pytest.raises(StorageError, match=r"was lost .*another run may be at work"):
                    send()
            until(lambda: is_free(state))
        budget.acquire().sent()
        proxy.cut()
        budget.acquire().sent()
        budget.close()
    assert shared_place.rows("SELECT count(*) FROM budget_slots") == [(3,)]


def test_each_owner_raises_the_fence_and_an_old_one_is_shut_out(state: State, shared_place: Place) -> None:
    """Even if its session lives on, as behind a server that forgot its locks."""
    fence = "SELECT fence FROM leases WHERE name LIKE 'old%'"
    assert is_free(state)
    assert is_free(shared_place.state(CLOCK))
    assert shared_place.rows(fence) == [(2,)]
    budget = Budget(state, "library", 100)
    with state.lease("old", DATA):
        permit = budget.acquire()
        shared_place.rows("UPDATE leases SET fence = fence + 1")
        for send in (permit.sent, budget.acquire):
            with pytest.raises(StorageError, match="Another run has taken over"):
                send()
    budget.acquire().sent()


def test_two_runs_in_one_process_are_two_runs(state: State) -> None:
    with state.lease("old", DATA):
        assert not is_free(state)
        assert is_free(state, "new")
    assert is_free(state)


@pytest.mark.long
def test_a_forked_process_sends_nothing_under_the_lease_of_its_parent(shared_place: Place) -> None:
    """It leaves its parent's session alone."""
    script = """if True:
        import os, sys
        from pipelines.errors import StorageError
        from pipelines.service.http.budget import Budget
        from pipelines.state.postgres import PostgresState
        state = PostgresState(sys.argv[1])
        with state.lease("old", "here"):
            budget = Budget(state, "library", 100)
            if (child := os.fork()) == 0:
                try:
                    budget.acquire()
                except StorageError as error:
                    os._exit(7 if "forked" in str(error) else 1)
                os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            budget.acquire().sent()
        print(budget.used())
    """
    command = [sys.executable, "-c", script, shared_place.address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_database_that_ends_in_the_middle_is_told_with_what_to_do(shared_place: Place) -> None:
    """An administrator ends the session: the run with a lease stops, and says so once and for all."""
    state = shared_place.state(CLOCK)
    budget = Budget(state, "library", 100)
    with state.lease("old", DATA), psycopg.connect(shared_place.address, autocommit=True) as administrator:
        administrator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() AND datname = current_database()"
        )
        with pytest.raises(StorageError, match=r"was lost \(.*administrator.*\), and with it the lease"):
            budget.acquire()
