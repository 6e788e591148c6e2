"""A kill at any instant, or a full disk at any file, leaves no snapshot or a complete one; the last good one stays current (I5, I9)."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

from pipelines.store.catalogue import open_catalogue
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.snapshot_factory import assert_intact, files_below
from tests.store.worker import Worker

pytestmark = pytest.mark.long


DEATHS = 28
"""Number of instants for kill -9, evenly distributed over the steps of a backup."""


@pytest.fixture
def worker(data: DataFolder) -> Iterator[Worker]:
    """A process whose children make snapshots in `data`."""
    with Worker(data.path) as worker:
        yield worker


def test_killed_at_any_instant(data: DataFolder, worker: Worker) -> None:
    """Kill -9 before any call: every visible snapshot is complete, the views have the newest one, the next run cleans up."""
    first = worker(day=0)
    published = [str(first["snapshot"]).partition("/")[2]]
    for death in range(DEATHS):
        killed = worker(day=death + 1, kill_at=1 + first["calls"] * death // DEATHS)
        assert killed["exit"] == -signal.SIGKILL
        assert_intact(data.snapshots()[-1])
        names = [snapshot.manifest.snapshot for snapshot in data.snapshots()]
        assert names[: len(published)] == published
        assert len(names) - len(published) in (0, 1)
        published = names
        assert _newest_shown(data) == published[-1]
    assert 1 < len(published) < DEATHS, "some died after publishing, some before"
    last = worker(day=DEATHS + 1)
    for snapshot in data.snapshots():
        assert_intact(snapshot)
    assert _newest_shown(data) == str(last["snapshot"]).partition("/")[2]
    assert files_below(data.work_path) == []
    assert [name for name in files_below(data.path) if name.startswith(".")] == [".catalogue.lock", ".lease-old.lock"]


@pytest.mark.parametrize("file", ["the first one", "raw/publications.parquet", "library.duckdb"])
def test_no_space_for_a_file(data: DataFolder, worker: Worker, file: str) -> None:
    """Files may grow to three quarters of this one's size: one message says so, and the last good snapshot stays (I5)."""
    worker(day=0, letters=2000)
    before = data.find_snapshot("old")
    size = sum(path.stat().st_size for path in (before.path / file, data.path / file) if path.exists())
    failed = worker(day=1, letters=2000, file_limit=size * 3 // 4 or 1)
    assert failed["error"] == "StorageError"
    assert "Cannot write to or read from" in failed["message"]
    assert size == 0 or file in failed["message"]
    assert "The last good snapshot is untouched." in failed["message"]
    for snapshot in data.snapshots():
        assert_intact(snapshot)
    assert data.snapshots()[0].name == before.name
    assert worker(day=2)["snapshot"] == _newest(data)
    assert files_below(data.work_path) == []


def test_a_full_disk(data: DataFolder) -> None:
    """The same on a full file system: a small one in memory, in the mount namespace of the worker alone."""
    mounted = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=1200k none {data.path} && "
    data.prepare()
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mounted, f"{mount} true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("this machine lets nobody mount a file system")
    with Worker(data.path, *mounted, f'{mount} exec "$@"', "sh") as worker:
        assert worker(day=0)["snapshot"] == "old/20261120T020000Z"
        failed = worker(day=1, records=400, letters=2000)
        assert (failed["error"], "the disk is full. Free some space" in failed["message"]) == ("StorageError", True)
        assert worker(day=2)["snapshot"] == "old/20261122T020000Z"


def _newest(data: DataFolder) -> str:
    return data.find_snapshot("old").name


def _newest_shown(data: DataFolder) -> str:
    """The snapshot in the views."""
    with open_catalogue(data) as database:
        [(name,)] = database.execute("SELECT DISTINCT snapshot FROM publications").fetchall()
    return str(name)
