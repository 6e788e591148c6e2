"""Two runs never read one tenant at once, and a killed run blocks no other (I9)."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipelines.errors import StorageError, TenantBusyError
from pipelines.service.clock import SystemClock
from pipelines.store.snapshots.snapshots import DataFolder
from tests.state_places import Place

HOLD = """
import sys
from pathlib import Path
from pipelines.store.snapshots.snapshots import DataFolder
with DataFolder(Path(sys.argv[1])).lease("old"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def data(tmp_path: Path, place: Place) -> DataFolder:
    """A data folder with each kind of state."""
    return DataFolder(tmp_path / "library-data", state=place.state(SystemClock()))


def test_a_second_process_is_refused_and_a_killed_one_loses_its_lease(data: DataFolder) -> None:
    """The kernel releases the lease at kill -9. Until then the message says who works; other tenants are free."""
    command = [sys.executable, "-c", HOLD, str(data.path)]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[3], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(
            TenantBusyError, match=r"Another run is at work on 'old' at this moment.*Wait until it ends"
        ):
            _acquire(data, "old")
        _acquire(data, "new")
        holder.kill()
        holder.wait()
        _acquire(data, "old")


def test_within_one_process_too(data: DataFolder) -> None:
    """Two runs in one process are two runs. A released lease is free again."""
    with data.lease("old"):
        for folder in (data, DataFolder(data.path)):
            with pytest.raises(TenantBusyError):
                _acquire(folder, "old")
        _acquire(data, "new")
    _acquire(data, "old")


def test_released_after_a_failure(data: DataFolder) -> None:
    """A failing run releases its lease."""
    with pytest.raises(ZeroDivisionError), data.lease("old"):
        raise ZeroDivisionError
    _acquire(data, "old")


def test_released_by_another_thread(data: DataFolder) -> None:
    """Any thread of a run may release the lease."""
    lease = data.lease("old")
    lease.__enter__()
    ending = threading.Thread(target=lease.__exit__, args=(None, None, None))
    ending.start()
    ending.join()
    _acquire(data, "old")


def test_a_data_folder_that_cannot_be_created(tmp_path: Path) -> None:
    """A file in the place of the folder."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="Cannot write to or read from"):
        _acquire(DataFolder(tmp_path / "file" / "library-data"), "old")


def _acquire(data: DataFolder, tenant: str) -> None:
    with data.lease(tenant):
        pass
