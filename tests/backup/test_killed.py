"""I9: a backup with files that is killed at any instant, and run again, gives the same result as without the kill."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.backup.fetching import PARALLEL_FILES
from pipelines.backup.flow import Backup
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.maintenance.retention import prune
from pipelines.store.maintenance.verification import verify_named
from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.busy_library import BusyLibrary
from tests.backup.files.file_library import FileLibrary
from tests.backup.runner import BackupRunner, ids_in, take_steps
from tests.forks import start

pytestmark = pytest.mark.long


KILLS = int(os.environ.get("BOOKFERRY_TEST_KILLS", "3"))
"""Number of kills, at instants spread over a whole backup."""

PAGES, FILES = 12, 40


def back_up(config: Path, run: str) -> None:
    with Backup.open(config) as library:
        take_steps(library, "old", run)


def ended(runner: BackupRunner, kill_after: float | None = None) -> int | None:
    """Back up in a process that is killed so many seconds after its start if it still runs. Returns its exit status."""
    process = start(back_up, runner.config, f"run-{time.monotonic_ns()}")
    process.join(kill_after)
    process.kill()
    process.join()
    return process.exitcode


@pytest.fixture
def library(file_library: FileLibrary) -> FileLibrary:
    """Twelve pages; some of the publications have a file."""
    for number in range(PAGES * 50 - 7):
        file_library.add(b"%d" % number * 300 if number % (PAGES * 50 // FILES) == 0 else b"")
        if not file_library.stored[f"/file-{number + 1}"]:
            file_library.publications[number + 1]["assets"] = []
    return file_library


def runner_for(folder: Path, file_library: FileLibrary) -> BackupRunner:
    folder.mkdir()
    return BackupRunner(folder, file_library.library.url)


def tables(snapshot: Snapshot) -> dict[str, pa.Table]:
    """Table → its content, but for the name of the snapshot."""
    contents = {name: pq.read_table(snapshot.path / facts.path) for name, facts in snapshot.manifest.tables.items()}
    return {name: table.drop_columns({"snapshot"} & {*table.column_names}) for name, table in contents.items()}


def the_snapshot(runner: BackupRunner) -> Snapshot:
    [snapshot] = Backup.open(runner.config).data.snapshots()
    return snapshot


def pages_read(file_library: FileLibrary) -> Counter[int]:
    """Page → number of requests for it."""
    return Counter(
        int(request.query["page"])
        for request in file_library.library.received
        if request.path.endswith("/publications/all")
    )


def assert_as_if_nobody_had(runner: BackupRunner, undisturbed: Snapshot) -> None:
    """The tables are equal, every blob is good, and nothing is left over."""
    snapshot = the_snapshot(runner)
    assert snapshot.manifest.complete
    assert tables(snapshot) == tables(undisturbed)
    data = Backup.open(runner.config).data
    [verified] = verify_named(data, None, now=datetime.now(UTC))
    assert (verified.ok, verified.blobs_read) == (True, verified.blobs)
    prune(data, ["old"], RetentionSettings(keep_last=1), ZoneInfo("UTC"), tenant=None, dry_run=False)
    assert len(runner.blobs()) == verified.blobs, "no blob that nothing needs"
    assert not [path for path in data.work_path.rglob("*") if path.is_file()]
    assert not (runner.data / "files" / "tmp" / "tenant=old").exists()


@pytest.fixture
def undisturbed(tmp_path: Path, library: FileLibrary) -> tuple[Snapshot, float]:
    """The snapshot of a backup without a kill, and its seconds."""
    for name in ("first", "undisturbed"):  # the first one warms up what the other takes its time from
        library.start_over()
        library.issue = 1
        runner, began = runner_for(tmp_path / name, library), time.monotonic()
        assert ended(runner) == 0
        took = time.monotonic() - began
    assert pages_read(library) == Counter(range(1, PAGES + 1)), "no request more than there are pages"
    return the_snapshot(runner), took


def test_killed_once_at_any_instant(tmp_path: Path, library: FileLibrary, undisturbed: tuple[Snapshot, float]) -> None:
    """The next run continues: no page is read more than twice, and no stored file is fetched again."""
    expected, took = undisturbed
    chance, early = random.Random(7), 0
    for kill in range(KILLS):
        runner = runner_for(tmp_path / f"killed-{kill}", library)
        library.start_over()
        library.issue = 1
        killed = ended(runner, kill_after=took * (kill + chance.random()) / KILLS) == -signal.SIGKILL
        early += killed
        if not Backup.open(runner.config).data.snapshots():  # else it was killed after all was done
            assert ended(runner) == 0
        assert_as_if_nobody_had(runner, expected)
        assert max(pages_read(library).values()) <= 2
        assert len(library.fetched()) <= FILES + PARALLEL_FILES, "stored files are not fetched again"
    assert early, "some were killed before they had ended"


def test_killed_again_and_again(tmp_path: Path, library: FileLibrary, undisturbed: tuple[Snapshot, float]) -> None:
    """One backup with many kills: each run has a little more time than the last one, and continues from it."""
    expected, took = undisturbed
    runner, chance, runs = runner_for(tmp_path / "again", library), random.Random(11), 1
    library.start_over()
    library.issue = 1
    while ended(runner, kill_after=took * (0.1 + 0.03 * runs) * chance.uniform(0.5, 1)) != 0:
        runs += 1
        if Backup.open(runner.config).data.snapshots():
            break
    assert_as_if_nobody_had(runner, expected)
    assert sum(pages_read(library).values()) <= PAGES + 8 * runs
    assert len(library.fetched()) <= FILES + PARALLEL_FILES * runs


def test_killed_while_people_work(tmp_path: Path) -> None:
    """I4, I9: a walk down the list goes on past every change: the snapshot is complete, whenever the first run ended."""
    chance, early, took = random.Random(13), 0, 1.0
    for kill in range(KILLS + 1):
        with BusyLibrary(kill, quiet=3, newest_first=kill % 3 == 2, pages=PAGES) as busy:
            busy.furnish()
            runner, began = runner_for(tmp_path / f"busy-{kill}", busy), time.monotonic()
            if kill == 0:  # not killed: it says how long a backup takes
                assert ended(runner) == 0
                took = time.monotonic() - began
            else:
                early += ended(runner, kill_after=took * (kill - chance.random()) / KILLS) == -signal.SIGKILL
            if not Backup.open(runner.config).data.snapshots():
                assert ended(runner) == 0
            snapshot = the_snapshot(runner)
        ids = ids_in(snapshot)
        assert snapshot.manifest.complete, snapshot.manifest.problems
        assert busy.throughout <= set(ids)
        assert len(ids) == len(set(ids))
    assert early, "some were killed before they had ended"
