"""Two runs never read one tenant at once, and a killed run blocks nobody (I9)."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipelines.errors import StorageError, TenantBusyError
from pipelines.store.snapshots.snapshots import DataFolder

HOLD = """
import sys
from pathlib import Path
from pipelines.store.snapshots import DataFolder
with DataFolder(Path(sys.argv[1])).lease("old"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_at_once_and_a_killed_one_keeps_nothing(data: DataFolder) -> None:
    """The kernel takes the lease back at kill -9; until then others are told who works, and other tenants are free."""
    command = [sys.executable, "-c", HOLD, str(data.path)]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[3], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(
            TenantBusyError, match=r"Another run is at work on 'old' at this moment.*Wait until it ends"
        ):
            _take(data, "old")
        _take(data, "new")
        holder.kill()
        holder.wait()
        _take(data, "old")


def test_within_one_process_too(data: DataFolder) -> None:
    """Two runs in one process are two runs; given back, the lease is free again."""
    with data.lease("old"):
        for folder in (data, DataFolder(data.path)):
            with pytest.raises(TenantBusyError):
                _take(folder, "old")
        _take(data, "new")
    _take(data, "old")


def test_given_back_after_a_failure(data: DataFolder) -> None:
    """A run that ends badly gives its lease back."""
    with pytest.raises(ZeroDivisionError), data.lease("old"):
        raise ZeroDivisionError
    _take(data, "old")


def test_given_back_by_another_thread(data: DataFolder) -> None:
    """Whichever thread of a run ends it gives the lease back."""
    lease = data.lease("old")
    lease.__enter__()
    ending = threading.Thread(target=lease.__exit__, args=(None, None, None))
    ending.start()
    ending.join()
    _take(data, "old")


def test_a_data_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file where the folder should be is told as such."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="Cannot write to or read from"):
        _take(DataFolder(tmp_path / "file" / "library-data"), "old")


def _take(data: DataFolder, tenant: str) -> None:
    with data.lease(tenant):
        pass
