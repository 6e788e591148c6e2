"""`bookferry state move`: the state is in one place or in the other, whole, and nobody goes on with an old one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipelines.errors import StorageError, TenantBusyError
from pipelines.migration import state_move
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.state_move import move_state
from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import Budget
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings
from pipelines.state.opening import open_state
from pipelines.state.store import State
from pipelines.store.stores import open_data
from tests.cli.command import run
from tests.forks import kill_at, start
from tests.state_places import Place

pytestmark = pytest.mark.usefixtures("quick_leases")

CLOCK = SystemClock()
OLD, NEW = "https://old.example.org", "https://new.example.org"
CONFIG = """
state = "{state}"
postgres_env = "TEST_STATE"
postgres.load = false
[tenants.old]
base_url = "https://old.example.org"
api = "v3"
[tenants.new]
base_url = "https://new.example.org"
api = "v3"
"""

KILLED_AT = {"nothing is copied": "_copied", "the copy is committed, and the file still has all": "_leave"}

At = Callable[[str], Settings]


@pytest.fixture
def at(tmp_path: Path, shared_place: Place, monkeypatch: pytest.MonkeyPatch) -> At:
    """The settings with the state in this place."""
    monkeypatch.setenv("TEST_STATE", shared_place.address)

    def settings(state: str) -> Settings:
        path = tmp_path / "bookferry.toml"
        path.write_text(CONFIG.format(state=state))
        (tmp_path / "library-data").mkdir(exist_ok=True)
        return load_settings(path)

    return settings


def fill(state: State, writes: int = 150) -> None:
    """Writes of two plans in all states, and a budget that the service asked to pause."""
    with closing(Journal(state, OLD, NEW, CLOCK)) as journal:
        for source_id in range(writes):
            number = journal.intend(
                "plan", "publications", source_id, WriteKind.CREATE, wanted={"title": str(source_id)}
            )
            if source_id % 3 == 0:
                journal.sent(number)
            elif source_id < 100:
                journal.done(number, target_id=source_id + 7, held={"title": "x"})
        journal.refused(
            journal.intend("later", "users", 1, WriteKind.PATCH, target_id=9, wanted={"name": "é"}), "no", 422
        )
    with closing(Budget(state, NEW, 60, CLOCK)) as budget:
        budget.acquire().sent()
        budget.pause(1000)


def content(state: State) -> list[Any]:
    """All that a run asks of the journal."""
    with closing(Journal(state, OLD, NEW, CLOCK)) as journal:
        entries = [
            msgspec.structs.replace(entry, number=0) for plan in ("plan", "later") for entry in journal.of_plan(plan)
        ]
        written = [(record.source_id, record.target_id) for record in journal.written("publications")]
    return [entries, written]


def refused(settings: Settings) -> str:
    """Why a run with these settings ends before it sends anything."""
    with pytest.raises(StorageError) as caught:
        Budget(open_state(settings), NEW, 60, CLOCK)
    return str(caught.value)


class StoppedClock(SystemClock):
    """Ends the first wait."""

    def sleep(self, seconds: float) -> None:
        """Does not wait."""
        raise StopAsyncIteration(seconds)


def killed(config: Path, where: str) -> None:
    kill_at(state_move, where, "before", lambda *_: True)
    move_state(load_settings(config))


@pytest.mark.long
@pytest.mark.parametrize("where", KILLED_AT.values(), ids=KILLED_AT)
def test_a_move_that_was_killed_leaves_the_state_where_it_was(at: At, where: str) -> None:
    """The same command finishes it: what is in the database already is not taken for the journal of somebody else."""
    settings = at("local")
    fill(open_state(settings))
    before = content(open_state(settings))
    process = start(killed, settings.path, where)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert content(open_state(settings)) == before
    assert move_state(settings).writes == 151
    assert content(open_state(at("postgres"))) == before
    assert "was moved to" in refused(at("local"))


def test_nothing_is_moved_while_a_run_is_at_work(at: At) -> None:
    settings = at("local")
    with open_data(settings).lease("new"), pytest.raises(TenantBusyError):
        move_state(settings)
    with open_data(at("postgres")).lease("old"), pytest.raises(TenantBusyError):
        move_state(at("local"))
    Budget(open_state(at("local")), NEW, 60, CLOCK).close()


def test_two_journals_of_one_library_are_not_mixed(at: At) -> None:
    """Another machine has begun to write with the shared state: what was written twice could not be told any more."""
    fill(open_state(at("local")))
    before = content(open_state(at("local")))
    with closing(Journal(open_state(at("postgres")), OLD, NEW, CLOCK)) as shared_journal:
        shared_journal.intend("another", "users", 1, WriteKind.CREATE)
    with pytest.raises(StorageError, match=r"has another journal of writes to https://new\.example\.org already"):
        move_state(at("local"))
    assert content(open_state(at("local"))) == before
    with closing(Journal(open_state(at("postgres")), OLD, NEW, CLOCK)) as shared_journal:
        assert [entry.state for entry in shared_journal.of_plan("another")] == [WriteState.INTENDED]


def test_a_request_that_was_under_way_is_not_granted_by_the_place_that_was_left(at: At) -> None:
    """A process without a lease, such as doctor, had its connection open."""
    budget = Budget(open_state(at("local")), NEW, 60, CLOCK)
    permit = budget.acquire()
    move_state(at("local"))
    for send in (permit.sent, budget.acquire):
        with pytest.raises(StorageError, match="moved"):
            send()
    budget.close()


@pytest.mark.long
def test_the_command(at: At, shared_place: Place, tmp_path: Path) -> None:
    """It says what to write into the configuration. The pause for which the service asked goes on."""
    fill(open_state(at("local")), 1500)
    before = content(open_state(at("local")))
    variables = {"TEST_STATE": shared_place.address}
    moved = run("state", "move", folder=tmp_path, variables=variables)
    assert moved.status == 0, moved.err
    assert moved.lines[0].startswith("Moved 1,501 writes of the journal from ")
    assert 'write state = "postgres"' in moved.lines[1]
    run("state", "move", folder=tmp_path, variables=variables).assert_failed(1, "was moved to postgresql://")
    shared = open_state(at("postgres"))
    assert content(shared) == before
    waits: list[float] = []
    with pytest.raises(StopAsyncIteration):
        Budget(shared, NEW, 60, StoppedClock(), on_pause=waits.append).acquire()
    assert 900 < waits[0] <= 1000
    shared.close()
