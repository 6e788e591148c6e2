"""Two runs never read one tenant at once, and a killed run blocks no other (I9)."""

from __future__ import annotations

import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from pipelines.errors import StorageError, TenantBusyError
from pipelines.service.clock import SystemClock
from pipelines.state import leases as state_leases
from pipelines.state.local import LocalState
from pipelines.state.postgres import PostgresState
from pipelines.store.objects.folders import Folder
from pipelines.store.snapshots import leases
from pipelines.store.snapshots.leases import POLL_SECONDS, Leases, removal
from pipelines.store.snapshots.snapshots import DataFolder
from tests.forks import CONTEXT, start
from tests.state_places import Place

pytestmark = pytest.mark.usefixtures("quick_leases")


@pytest.fixture
def data(tmp_path: Path, place: Place) -> DataFolder:
    """A data folder with each kind of state."""
    return DataFolder(tmp_path / "library-data", state=place.state(SystemClock()))


@pytest.mark.long
def test_a_second_process_is_refused_and_a_killed_one_loses_its_lease(data: DataFolder) -> None:
    """The kernel releases the lease at kill -9. Until then the message says who works; other tenants are free."""
    pipe, holders = CONTEXT.Pipe()
    holder = start(hold, data.path, holders)
    assert pipe.recv() == "held"
    with pytest.raises(TenantBusyError, match=r"Another run is at work on 'old' at this moment.*Wait until it ends"):
        _acquire(data, "old")
    _acquire(data, "new")
    holder.kill()
    holder.join()
    _acquire(data, "old")


def hold(data: Path, pipe: Connection) -> None:
    with DataFolder(data).lease("old"):
        pipe.send("held")
        pipe.recv()


def test_a_data_folder_that_cannot_be_created(tmp_path: Path) -> None:
    """A file in the place of the folder."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="Cannot write to or read from"):
        _acquire(DataFolder(tmp_path / "file" / "library-data"), "old")


def _acquire(data: DataFolder, tenant: str) -> None:
    with data.lease(tenant):
        pass


class Removal:
    """`snapshots prune` in a process of its own, on a machine of its own where the state is in a database. Its clock ends it."""

    def __init__(self, data: DataFolder, place: Place, sleeps: int) -> None:
        path = data.path.with_name("other-machine") if place.address else data.path
        self.sleeps = sleeps
        self.time = 0.0
        self._pipe, pipe = CONTEXT.Pipe()
        self.process = start(remove, path, data.path, place.address, pipe)
        assert self._pipe.recv() == "held"

    def monotonic(self) -> float:
        """Seconds that were slept."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Pass time; after so many sleeps, the removal has ended."""
        self.time += seconds
        self.sleeps -= 1
        if self.sleeps == 0:
            self.end()

    def end(self) -> None:
        """Let the removal end."""
        self._pipe.send("end")
        self.process.join()


def remove(work: Path, data: Path, database: str, pipe: Connection) -> None:
    state_leases.BEAT_SECONDS = 0.2
    state = PostgresState(database) if database else LocalState(work / "state.db")
    with removal(DataFolder(work, objects=Folder(data), state=state)):
        pipe.send("held")
        pipe.recv()


class TestRemoval:
    """`snapshots prune` and runs do not break each other: who begins later waits."""

    def test_a_run_waits_until_it_ends(self, data: DataFolder, place: Place, caplog: pytest.LogCaptureFixture) -> None:
        """Meanwhile nobody else begins a run of the same tenant: it has its lease."""
        clock = Removal(data, place, sleeps=3)
        leases = Leases(data, clock)
        leases.acquire("old")
        assert (clock.time, clock.sleeps) == (3 * POLL_SECONDS, 0)
        assert [record.getMessage() for record in caplog.records] == [
            "`snapshots prune` removes old snapshots at this moment; waiting until it ends, for an hour at most."
        ]
        with pytest.raises(TenantBusyError, match="'old'"):
            _acquire(data, "old")
        leases.release()
        _acquire(data, "old")

    def test_so_does_another_removal(self, data: DataFolder, place: Place) -> None:
        """Forty units may remove what is old in the same minute."""
        clock = Removal(data, place, sleeps=2)
        with removal(data, clock):
            assert clock.sleeps == 0

    def test_not_for_ever(self, data: DataFolder, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """After an hour, here some seconds, the run fails, and gives its own lease back."""
        monkeypatch.setattr(leases, "MOST_SECONDS", 5.0)
        clock = Removal(data, place, sleeps=10_000_000)
        with pytest.raises(TenantBusyError, match="removing old snapshots for an hour"):
            Leases(data, clock).acquire("old")
        assert 5 <= clock.time < 5 + 2 * POLL_SECONDS
        _acquire(data, "old")
        clock.end()

    def test_a_killed_one_keeps_nobody(self, data: DataFolder, place: Place) -> None:
        """The kernel releases its lease, or its silence ends it."""
        clock = Removal(data, place, sleeps=0)
        clock.process.kill()
        clock.process.join()
        Leases(data, clock).acquire("old")


def test_whoever_looks_at_a_lease_keeps_nobody_from_it(data: DataFolder) -> None:
    """`dead_runs` and `snapshots prune` look at leases; a backup that begins in that instant is not refused."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.0001):
            data.leased(["old"])

    looking = threading.Thread(target=look)
    looking.start()
    try:
        folder = DataFolder(data.path)
        for _ in range(200):
            _acquire(folder, "old")
    finally:
        ended.set()
        looking.join()
