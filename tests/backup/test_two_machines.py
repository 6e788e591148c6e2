"""Two machines without a shared disk, with one bucket and one database: what one of them began, the other one continues (I9)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pipelines.backup import flow
from pipelines.backup.flow import Backup
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.catalogue import open_catalogue
from pipelines.store.maintenance.retention import prune
from pipelines.store.maintenance.verification import verify
from pipelines.store.objects.buckets import Bucket
from pipelines.store.objects.objects import MANIFEST
from pipelines.store.snapshots.capture_copies import CAPTURES, CaptureCopy, newest_copies
from pipelines.store.snapshots.snapshots import BLOBS, Snapshot
from tests.backup.runner import take_steps
from tests.cli.command import PATIENCE, ROOT
from tests.forks import kill_at, start
from tests.postgres import database
from tests.sandbox.process import SandboxProcess
from tests.shared_machines import SHARED, TENANT
from tests.store.s3 import S3, shared_s3

__all__ = ["shared_s3"]

PAGES = 40
PRUNE = """
import sys
from pathlib import Path
from zoneinfo import ZoneInfo
from pipelines.backup.flow import Backup
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.maintenance.retention import prune

def wait(_):
    print("removing", flush=True)
    sys.stdin.read()

with Backup.open(Path(sys.argv[1])) as backup:
    result = prune(backup.data, ["old"], RetentionSettings(keep_last=1), ZoneInfo("UTC"), tenant="old", dry_run=False, before_removal=wait)
    print(*(entry.snapshot for entry in result.removed))
"""
"""A removal that goes on when nobody writes to it any more."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxProcess]:
    with SandboxProcess(f"--tenant=library=real:{50 * PAGES}", "--requests-per-minute", "0") as process:
        yield process


@pytest.fixture
def machine(
    sandbox: SandboxProcess, shared_s3: S3, state_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Path]]:
    """Makes the configuration of a machine with a work folder of its own; all have one bucket and one database."""
    sandbox.reset("counts", "faults", "settings")
    for name, value in {**shared_s3.environ, "TEST_USER": sandbox.user, "TEST_PASSWORD": sandbox.password}.items():
        monkeypatch.setenv(name, value)
    bucket = shared_s3.bucket()

    def make(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        config = folder / "bookferry.toml"
        tenant = TENANT.format(name="old", base_url=sandbox.base_url(), limit=100_000)
        config.write_text(SHARED.format(bucket=bucket) + tenant)
        return config

    with database(state_server) as address:
        monkeypatch.setenv("TEST_POSTGRES", address)
        yield make


def read(config: Path) -> None:
    """Read for a backup, which copies what it has read ten times a second instead of once a minute."""
    CaptureCopy.__init__.__kwdefaults__["seconds"] = 0.1
    with Backup.open(config) as backup:
        backup.read_raw("old", "first", "publications")


def copied(config: Path) -> int:
    """How many segments of pages the copy in the bucket has: a segment is there before the list that names it."""
    with Backup.open(config) as backup:
        lists = [json.loads(backup.data.objects.read(copy)) for copy in newest_copies(backup.data).values()]
        return sum(len(files.get("pages/publications", ())) for files in lists)


def killed_within_the_listing(config: Path, sandbox: SandboxProcess, *, alone: bool = False) -> int:
    """Back up on a machine that is lost after a few pages were copied; `alone`: after half were read. Returns the requests until then."""
    sandbox.change(latency=0.05)
    worker = start(read, config)
    deadline = time.monotonic() + PATIENCE
    while (sandbox.counts()["requests"] < PAGES / 2) if alone else (copied(config) < 3):
        assert worker.exitcode is None, "the backup ended"
        assert time.monotonic() < deadline
    worker.kill()
    worker.join(PATIENCE)
    sandbox.change(latency=0)
    return sandbox.counts()["requests"]


def finished(config: Path, run: str = "second") -> tuple[Snapshot, int]:
    """Back up to the end. Returns the snapshot, and the pages that an earlier run had read."""
    with Backup.open(config) as backup:
        snapshot = take_steps(backup, "old", run)
        return snapshot, snapshot.manifest.resources["publications"].resumed


@pytest.mark.long
def test_another_machine_continues_a_backup_whose_worker_is_gone(
    machine: Callable[[str], Path], sandbox: SandboxProcess
) -> None:
    """It reads again only what the copy lacked, and leaves nothing of the first one behind."""
    first_machine, second_machine = machine("one"), machine("other")
    request_count = killed_within_the_listing(first_machine, sandbox)
    snapshot, resumed = finished(second_machine)
    assert 3 <= resumed <= request_count
    assert (snapshot.manifest.complete, snapshot.counts["publications"]) == (True, 50 * PAGES)
    files = sandbox.counts()["requests"] - request_count - (PAGES - resumed)
    assert files < PAGES, "no page twice"
    with Backup.open(second_machine) as backup:
        assert verify(backup.data, snapshot.key, now=backup._now()).ok
        assert [*backup.data.objects.below(CAPTURES)] == []
    later_snapshot, resumed = finished(first_machine)
    assert (later_snapshot.manifest.complete, resumed) == (True, 0), (
        "what the first one has on its disk is of a snapshot that is published"
    )


INSTANTS: dict[str, tuple[object, str, str, Callable[..., bool]]] = {
    "the manifest is there": (Bucket, "put", "after", lambda _bucket, key, _content: key.endswith(MANIFEST)),
    "publishing has ended": (flow, "publish", "after", lambda *_: True),
    "the copies are removed": (CaptureCopy, "remove", "after", lambda *_: True),
    "views are made": (flow, "rebuild_catalogue", "after", lambda *_: True),
}
"""Instants after a publication → the call, and whether the machine is lost before or after it."""


def lost(config: Path, instant: str) -> None:
    """Back up on a machine that is lost after the publication."""
    kill_at(*INSTANTS[instant])
    with Backup.open(config) as backup:
        take_steps(backup, "old", "first")


@pytest.mark.long
@pytest.mark.usefixtures("quick_leases")
@pytest.mark.parametrize("instant", INSTANTS)
def test_what_was_published_before_its_worker_was_gone_is_not_made_again(
    machine: Callable[[str], Path], sandbox: SandboxProcess, instant: str
) -> None:
    """The run that is requested in its place finds it, whatever the first one still had to do; the next night is another snapshot."""
    first_machine, second_machine = machine("one"), machine("other")
    for config in (first_machine, second_machine):
        config.write_text(f"{config.read_text()}files = false\n")
    worker = start(lost, first_machine, instant)
    worker.join(PATIENCE)
    assert worker.exitcode == -signal.SIGKILL
    request_count = sandbox.counts()["requests"]
    with Backup.open(second_machine) as backup:
        [published] = backup.data.snapshots("old")
        replacement = backup.make("old", "second", instead_of="first")
        assert (replacement.name, sandbox.counts()["requests"]) == (published.name, request_count)
        with open_catalogue(backup.data) as database:
            assert database.execute("SELECT DISTINCT snapshot FROM publications").fetchall() == [(published.id,)]
    snapshot, resumed = finished(first_machine, "next")
    assert (snapshot.manifest.complete, resumed) == (True, 0)
    with Backup.open(second_machine) as backup:
        assert [entry.name for entry in backup.data.snapshots("old")] == [published.name, snapshot.name]
        assert verify(backup.data, published.key, now=backup._now()).ok
        assert [*backup.data.objects.below(CAPTURES)] == []
        assert backup.data.objects.unfinished("snapshots") == set()


@pytest.mark.long
def test_a_backup_that_began_before_the_state_was_shared_is_continued(
    machine: Callable[[str], Path], sandbox: SandboxProcess
) -> None:
    """By its own machine, because there is no copy of it; unless its snapshot has been published since."""
    first_machine, second_machine = machine("one"), machine("other")
    shared = first_machine.read_text()
    first_machine.write_text(shared.replace('state = "postgres"', 'state = "local"'))
    killed_within_the_listing(first_machine, sandbox, alone=True)
    first_machine.write_text(shared)
    snapshot, resumed = finished(first_machine)
    assert (snapshot.manifest.complete, resumed > 0) == (True, True)
    with Backup.open(second_machine) as backup:
        assert [*backup.data.objects.below(CAPTURES)] == []
        assert verify(backup.data, snapshot.key, now=backup._now()).ok


@pytest.mark.long
def test_prune_on_another_machine_keeps_what_an_unfinished_backup_relies_on(
    machine: Callable[[str], Path], sandbox: SandboxProcess
) -> None:
    first_machine, second_machine = machine("one"), machine("other")
    killed_within_the_listing(first_machine, sandbox)
    with Backup.open(second_machine) as backup:
        blobs = [*backup.data.objects.below(BLOBS)]
        assert blobs, "files are fetched while the records are listed"
        result = prune(
            backup.data, ["old"], RetentionSettings(keep_last=1), ZoneInfo("UTC"), tenant=None, dry_run=False
        )
        assert [*backup.data.objects.below(BLOBS)] == blobs
    assert any("is an unfinished backup" in note for note in result.notes)


@pytest.mark.long
def test_prune_beside_a_running_backup_of_another_machine_leaves_its_blobs(machine: Callable[[str], Path]) -> None:
    first_machine, second_machine = machine("one"), machine("other")
    with Backup.open(first_machine) as running:
        running.read_raw("old", "first", "publications")
        with Backup.open(second_machine) as backup:
            result = prune(
                backup.data, ["old"], RetentionSettings(keep_last=1), ZoneInfo("UTC"), tenant=None, dry_run=False
            )
    assert result.blobs_removed == 0
    assert any("Blobs were left as they are" in note for note in result.notes)


@pytest.mark.long
def test_a_backup_that_meets_a_removal_of_another_machine_waits(
    machine: Callable[[str], Path], sandbox: SandboxProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """It sends nothing until then, and neither loses anything: both snapshots that stay are whole."""
    first_machine, second_machine = machine("one"), machine("other")
    snapshots = [finished(first_machine, run)[0] for run in ("first", "second")]
    request_count = sandbox.counts()["requests"]
    with (
        subprocess.Popen(
            [sys.executable, "-c", PRUNE, str(second_machine)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as removing,
        ThreadPoolExecutor() as backups,
    ):
        assert removing.stdout is not None
        assert removing.stdout.readline() == "removing\n"
        backup = backups.submit(finished, first_machine, "third")
        deadline = time.monotonic() + PATIENCE
        while not caplog.records:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert (backup.done(), sandbox.counts()["requests"]) == (False, request_count)
        removed, _ = removing.communicate(timeout=PATIENCE)
        snapshot, _ = backup.result()
    assert removed.split() == [snapshots[0].name]
    with Backup.open(second_machine) as reader:
        assert [entry.name for entry in reader.data.snapshots()] == [snapshots[1].name, snapshot.name]
        assert all(verify(reader.data, entry.key, now=reader._now()).ok for entry in reader.data.snapshots())
