"""A lease among machines: one at a time has it, and whoever loses it sends no further request (I9)."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import psycopg
import pytest

from pipelines.errors import BookferryError, StorageError, TenantBusyError
from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import Budget
from pipelines.state import leases
from pipelines.state.postgres import PostgresState
from pipelines.state.store import State
from tests.forks import CONTEXT, start
from tests.state.proxy import Proxy
from tests.state_places import Place, slots_taken

pytestmark = pytest.mark.usefixtures("quick_leases")

DATA = "s3://bucket/data"
CLOCK = SystemClock()


def test_a_beat_that_waits_while_its_lease_is_given_back_leaves_no_session_open() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.execute("CREATE TABLE leases (name TEXT PRIMARY KEY, fence INTEGER, owner TEXT, beats INTEGER)")
    waits, goes_on = threading.Event(), threading.Event()
    sessions = list[str]()

    @contextmanager
    def transaction() -> Iterator[sqlite3.Connection]:
        if threading.current_thread().name == "leases":
            waits.set()
            assert goes_on.wait(60)
        sessions.append("opened")
        yield database

    table, earlier_threads = (
        leases.LeaseTable(transaction, lambda: sessions.append("closed"), "the database"),
        threading.enumerate(),
    )
    with table.lease("old", "busy"):
        [thread] = [
            thread for thread in threading.enumerate() if thread.name == "leases" and thread not in earlier_threads
        ]
        assert waits.wait(60)
    goes_on.set()
    thread.join(60)
    assert sessions == ["opened", "opened", "closed", "opened", "closed"]


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
            assert slots_taken(Budget(state, "library", 100)) == 0
            assert state.fence("old", DATA) > 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_free(state: State, tenant: str = "old") -> bool:
    """Whether the lease can be taken, perhaps after the silence of a holder that is gone."""
    try:
        with state.lease(tenant, DATA):
            return True
    except TenantBusyError:
        return False


@pytest.fixture
def state(shared_place: Place) -> State:
    return shared_place.state(CLOCK)


class Holder:
    """A process that holds the lease and has a slot."""

    def __init__(self, address: str) -> None:
        self._pipe, pipe = CONTEXT.Pipe()
        self.process = start(hold, address, pipe)
        assert self._pipe.recv() == "holds"
        self.pid = self.process.pid or 0

    def said_at_last(self) -> list[str]:
        """What it says when it tries to send."""
        self._pipe.send("go on")
        assert self._pipe.poll(60)
        return list(self._pipe.recv())


def hold(address: str, pipe: Connection) -> None:
    leases.BEAT_SECONDS, leases.SILENCE_SECONDS = 0.2, 1.5
    state, said = PostgresState(address), list[str]()
    with state.lease("old", DATA):
        budget = Budget(state, "library", 100)
        permit = budget.acquire()
        pipe.send("holds")
        pipe.recv()
        for send in (permit.sent, budget.acquire):
            try:
                send()
            except BookferryError as error:
                said.append(f"{type(error).__name__} {error}")
            else:
                said.append("sends")
        pipe.send(said)


@pytest.fixture
def holder(shared_place: Place) -> Iterator[Holder]:
    holder = Holder(shared_place.address)
    yield holder
    holder.process.kill()


@pytest.mark.long
def test_a_second_machine_is_refused_and_told_who_works(holder: Holder, state: State) -> None:
    """Other tenants, and the same one of other data, are free. The lease of a killed process is free after its silence."""
    with pytest.raises(TenantBusyError, match=rf"at work on 'old'.*process {holder.pid} on .* since 20"):
        state.lease("old", DATA).__enter__()
    assert state.leased(["old", "new"], DATA) == {"old"}
    with state.lease("new", DATA), state.lease("old", "s3://another"):
        pass
    holder.process.kill()
    killed = time.monotonic()
    assert is_free(state)
    assert time.monotonic() - killed >= leases.SILENCE_SECONDS - leases.BEAT_SECONDS


@pytest.mark.long
def test_one_that_was_killed_is_not_at_work(holder: Holder, state: State) -> None:
    """Whoever finds that out has waited for everybody."""
    holder.process.kill()
    holder.process.join()
    assert state.leased(["old"], DATA) == set()
    asked = time.monotonic()
    assert is_free(state)
    assert time.monotonic() - asked < leases.SILENCE_SECONDS / 2


@pytest.mark.long
def test_a_holder_that_is_silent_for_long_keeps_its_lease(holder: Holder, shared_place: Place) -> None:
    """It is at work on something else; a thread speaks for it."""
    assert shared_place.rows("SELECT pg_sleep(3)")
    assert not is_free(shared_place.state(CLOCK))
    assert holder.said_at_last() == ["sends", "sends"]


@pytest.mark.long
def test_a_holder_that_was_stopped_sends_nothing_after_another_took_over(
    holder: Holder, state: State, shared_place: Place
) -> None:
    """SIGSTOP, and SIGCONT when another run is at work: neither what was granted before leaves, nor anything new."""
    os.kill(holder.pid, signal.SIGSTOP)
    with state.lease("old", DATA):
        os.kill(holder.pid, signal.SIGCONT)
        said = holder.said_at_last()
    assert len(said) == 2
    for line in said:
        assert line.startswith("StorageError This run has lost the lease of 'old' (`leases` in postgresql://")
        assert "Nothing further is sent or written. Run the same command again." in line
    assert shared_place.rows("SELECT count(*) FROM budget_slots") == [(1,)]


@pytest.mark.long
def test_a_holder_that_was_stopped_goes_on_where_nobody_came(holder: Holder, shared_place: Place) -> None:
    """A person types Ctrl-Z, and later fg."""
    os.kill(holder.pid, signal.SIGSTOP)
    assert shared_place.rows("SELECT pg_sleep(3)")
    os.kill(holder.pid, signal.SIGCONT)
    assert holder.said_at_last() == ["sends", "sends"]


def test_who_is_cut_off_for_a_moment_goes_on(shared_place: Place) -> None:
    """The network goes, and comes again before the lease has ended."""
    with Proxy(shared_place.address) as proxy:
        cut_off = PostgresState(proxy.address)
        budget = Budget(cut_off, "library", 100)
        with cut_off.lease("old", DATA):
            permit = budget.acquire()
            proxy.cut()
            permit.sent()
            proxy.cut()
            budget.acquire().sent()
        budget.close()
    assert shared_place.rows("SELECT count(*) FROM budget_slots") == [(2,)]


@pytest.mark.long
def test_who_is_cut_off_for_long_sends_nothing(shared_place: Place, state: State) -> None:
    """By itself while the network is away, and by the database when it is there again. Without the lease it may begin anew."""
    with Proxy(shared_place.address) as proxy:
        cut_off = PostgresState(proxy.address)
        budget = Budget(cut_off, "library", 100)
        with cut_off.lease("old", DATA):
            permit = budget.acquire()
            proxy.refuse()
            with state.lease("old", DATA):
                for send in (permit.sent, budget.acquire, cut_off.renew_leases):
                    with pytest.raises(StorageError, match="cannot be reached"):
                        send()
                proxy.refuses = False
                for send in (permit.sent, budget.acquire, cut_off.renew_leases):
                    with pytest.raises(StorageError, match="has lost the lease"):
                        send()
        budget.acquire().sent()
        budget.close()
    assert shared_place.rows("SELECT count(*) FROM budget_slots") == [(2,)]


def test_what_was_granted_long_ago_leaves_only_after_a_beat(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its holder looks at its own clock right before the request: within the silence nobody else can have the lease."""
    monkeypatch.setattr(leases.LeaseTable, "_keep_beating", lambda *_: None)
    monkeypatch.setattr(leases, "SILENCE_SECONDS", 60)  # more than a busy machine takes for this
    budget = Budget(state, "library", 100)
    with state.lease("old", DATA):
        permit = budget.acquire()
        assert not state.renew_leases()
        began = time.monotonic()
        monkeypatch.setattr(leases, "time", Later(leases.SILENCE_SECONDS * 0.7))
        assert state.renew_leases()
        assert not state.renew_leases()
        permit.sent()
        assert time.monotonic() - began < leases.SILENCE_SECONDS
    budget.close()


class Later:
    """A clock that is so many seconds ahead."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def monotonic(self) -> float:
        """Return the time."""
        return time.monotonic() + self._seconds

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def test_nothing_is_written_by_a_transaction_that_began_under_a_lease_that_was_lost(
    state: State, shared_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases.LeaseTable, "_keep_beating", lambda *_: None)
    store = state.open(CLOCK)
    with state.lease("old", DATA):
        with pytest.raises(StorageError, match="has lost the lease"), store.transaction() as db:  # noqa: PT012
            db.execute("INSERT INTO budget_libraries (library) VALUES ('library')")
            with shared_place.state(CLOCK).lease("old", DATA):
                pass
        assert shared_place.rows("SELECT * FROM budget_libraries") == []


def test_nobody_takes_over_between_the_check_and_the_commit(state: State, shared_place: Place) -> None:
    """The check locks the row against a change of its owner, but not against beats."""
    with state.lease("old", DATA), psycopg.connect(shared_place.address) as transaction:
        transaction.execute("SELECT 1 FROM bookferry_state.leases FOR KEY SHARE")
        assert state.fence("old", DATA) == 1
        end = "SET lock_timeout = 100; UPDATE leases SET owner = NULL, fence = fence + 1"
        with pytest.raises(psycopg.errors.LockNotAvailable):
            shared_place.rows(end)


def test_each_owner_raises_the_fence_and_an_old_one_is_shut_out(state: State, shared_place: Place) -> None:
    assert is_free(state)
    budget = Budget(state, "library", 100)
    with state.lease("old", DATA):
        assert state.fence("old", DATA) == 2
        permit = budget.acquire()
        shared_place.rows("UPDATE leases SET fence = fence + 1")
        for send in (permit.sent, budget.acquire, lambda: state.fence("old", DATA)):
            with pytest.raises(StorageError, match="has lost the lease of 'old'"):
                send()
    budget.acquire().sent()


def test_a_database_that_restarts_takes_no_lease(shared_place: Place, state: State) -> None:
    """An administrator ends all sessions: the run with the lease goes on, and nobody else has it."""
    budget = Budget(state, "library", 100)
    with state.lease("old", DATA), psycopg.connect(shared_place.address, autocommit=True) as administrator:
        administrator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() AND datname = current_database()"
        )
        budget.acquire().sent()
        assert not is_free(shared_place.state(CLOCK))


@pytest.mark.long
def test_whoever_waits_for_a_lease_ends_it_only_by_looks_that_succeed(holder: Holder, shared_place: Place) -> None:
    """A database that was away gives its holders the whole time anew: who waited begins again."""
    with Proxy(shared_place.address) as proxy:
        os.kill(holder.pid, signal.SIGSTOP)
        refusing = threading.Timer(leases.SILENCE_SECONDS / 2, proxy.refuse)
        refusing.start()
        with pytest.raises(StorageError, match="Is the server running"):
            is_free(PostgresState(proxy.address))
        refusing.join()
    os.kill(holder.pid, signal.SIGCONT)
    assert holder.said_at_last() == ["sends", "sends"]
