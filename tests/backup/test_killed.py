"""I9: a backup with files that is killed at any instant, and run again, ends as if nobody had killed it."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pipelines.backup.flow import Backup
from pipelines.store.maintenance.retention import Policy, prune
from pipelines.store.maintenance.verification import verify_named
from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.files.shelf import Desk, Shelf
from tests.cli.command import ROOT, environment

KILLS = int(os.environ.get("BOOKFERRY_TEST_KILLS", "3"))
"""How often it is killed, at instants that are spread over a whole backup."""

PAGES, FILES = 12, 40

ZYGOTE = """
import os, sys
from pathlib import Path
import pipelines.service.hooks, pipelines.staging
from pipelines.library import Library

def back_up(config, run):
    with Library.open(Path(config)) as library:
        library.read_raw("old", run, "publications")
        library.stage("old", run, "publications")
        library.fetch_files("old", run)
        library.publish("old", run)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        back_up(*line.split())
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A process that has everything imported; each line makes a child of it that backs up."""


class Backups:
    """Backups in processes of their own, which start at once."""

    def __init__(self) -> None:
        environ = environment(TEST_USER="somebody", TEST_PASSWORD="made-up-for-this-test")
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", ZYGOTE]
        self._process = subprocess.Popen(command, cwd=ROOT, env=environ, stdin=pipe, stdout=pipe, text=True)
        self._run = 0

    def __call__(self, desk: Desk, kill_after: float | None = None) -> int:
        """One backup, killed so many seconds after its start if it has not ended by then; its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._run += 1
        self._process.stdin.write(f"{desk.config} run-{self._run}\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        if kill_after is not None:
            time.sleep(kill_after)  # a random instant is what is wanted
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return int(self._process.stdout.readline())

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture(scope="module")
def backups() -> Iterator[Backups]:
    started = Backups()
    yield started
    started.end()


@pytest.fixture
def library(shelf: Shelf) -> Shelf:
    """Twelve pages; some of their publications have a file."""
    for number in range(PAGES * 50 - 7):
        shelf.add(b"%d" % number * 300 if number % (PAGES * 50 // FILES) == 0 else b"")
        if not shelf.stored[f"/file-{number + 1}"]:
            shelf.publications[number + 1]["assets"] = []
    return shelf


def a_desk(folder: Path, shelf: Shelf) -> Desk:
    folder.mkdir()
    return Desk(folder, shelf.library.url)


def tables(snapshot: Snapshot) -> dict[str, str]:
    """Table → SHA-256 of its file."""
    return {
        name: hashlib.sha256((snapshot.path / facts.path).read_bytes()).hexdigest()
        for name, facts in snapshot.manifest.tables.items()
    }


def the_snapshot(desk: Desk) -> Snapshot:
    [snapshot] = Backup.open(desk.config).data.snapshots()
    return snapshot


def pages_read(shelf: Shelf) -> Counter[int]:
    """Page → how often it was asked for."""
    return Counter(int(one.query["page"]) for one in shelf.library.received if one.path.endswith("/publications/all"))


def assert_as_if_nobody_had(desk: Desk, undisturbed: Snapshot) -> None:
    """The same tables byte for byte, every blob good, nothing left over."""
    snapshot = the_snapshot(desk)
    assert snapshot.manifest.complete
    assert tables(snapshot) == tables(undisturbed)
    data = Backup.open(desk.config).data
    [verified] = verify_named(data, None, now=datetime.now(UTC))
    assert (verified.ok, verified.blobs_read) == (True, verified.blobs)
    prune(data, ["old"], Policy(last=1), ZoneInfo("UTC"), tenant=None, dry_run=False)
    assert len(desk.blobs()) == verified.blobs, "no blob that nothing needs"
    assert not [path for path in data.work_path.rglob("*") if path.is_file()]


@pytest.fixture
def undisturbed(backups: Backups, tmp_path: Path, library: Shelf) -> tuple[Snapshot, float]:
    """What nobody killed, and how long it took."""
    for name in ("first", "undisturbed"):  # the first one warms up what the other takes its time from
        library.forget()
        library.issue = 1
        desk, began = a_desk(tmp_path / name, library), time.monotonic()
        assert backups(desk) == 0
        took = time.monotonic() - began
    assert pages_read(library) == Counter(range(1, PAGES + 1)), "no request more than there are pages"
    return the_snapshot(desk), took


def test_killed_once_at_any_instant(
    backups: Backups, tmp_path: Path, library: Shelf, undisturbed: tuple[Snapshot, float]
) -> None:
    """Each time the next run goes on: no page is read more than twice, no file that is kept is fetched again."""
    expected, took = undisturbed
    chance, early = random.Random(7), 0
    for kill in range(KILLS):
        desk = a_desk(tmp_path / f"killed-{kill}", library)
        library.forget()
        library.issue = 1
        killed = backups(desk, kill_after=took * (kill + chance.random()) / KILLS) == -signal.SIGKILL
        early += killed
        if not Backup.open(desk.config).data.snapshots():  # else it was killed after all was done
            assert backups(desk) == 0
        assert_as_if_nobody_had(desk, expected)
        assert max(pages_read(library).values()) <= 2
        assert max(Counter(library.fetched()).values()) <= 2
    assert early, "some were killed before they had ended"


def test_killed_again_and_again(
    backups: Backups, tmp_path: Path, library: Shelf, undisturbed: tuple[Snapshot, float]
) -> None:
    """One backup that never gets far: each run has a little more time than the one before, and goes on where that was killed."""
    expected, took = undisturbed
    desk, chance, runs = a_desk(tmp_path / "again", library), random.Random(11), 1
    library.forget()
    library.issue = 1
    while backups(desk, kill_after=took * (0.1 + 0.03 * runs) * chance.uniform(0.5, 1)) != 0:
        runs += 1
        if Backup.open(desk.config).data.snapshots():
            break
    assert_as_if_nobody_had(desk, expected)
    assert sum(pages_read(library).values()) <= PAGES + 8 * runs
