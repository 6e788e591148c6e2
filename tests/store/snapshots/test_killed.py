"""A kill at any instant leaves no snapshot or a complete one; the last good one stays current (I5, I9)."""

from __future__ import annotations

import signal

import pytest

from pipelines.store.catalogue import open_catalogue
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.snapshot_factory import assert_intact, files_below
from tests.store.worker import Worker

pytestmark = pytest.mark.long


DEATHS = 28
"""Number of instants for kill -9, evenly distributed over the steps of a backup."""


def test_killed_at_any_instant(data: DataFolder) -> None:
    """Kill -9 before any call: every visible snapshot is complete, the views have the newest one, the next run cleans up."""
    with Worker(data.path) as worker:
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


def _newest_shown(data: DataFolder) -> str:
    """The snapshot in the views."""
    with open_catalogue(data) as database:
        [(name,)] = database.execute("SELECT DISTINCT snapshot FROM publications").fetchall()
    return str(name)
