"""The report that a second process begins while other resources are read: it is the report that would be made afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from pipelines.backup import files, staging
from pipelines.backup.flow import Backup
from pipelines.errors import StorageError
from pipelines.report.build import make_report, open_workdir
from pipelines.report.pages import Report
from pipelines.report.second_process import ReportProcess
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.reports import ISSUE_KEYS, ISSUES, MARKDOWN, report_key
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.stores import open_data
from tests.assets_defs.test_definitions import settings_for
from tests.report.library import NOW, hostile_records, real_records, snapshot_of
from tests.store.snapshot_factory import STARTED_AT, new_capture, write_raw

COLLECTIONS = [json.dumps({"id": number, "name": f"Shelf {number}"}) for number in (1, 2)]

TONIGHT = STARTED_AT + timedelta(days=1)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_for(tmp_path, "old")


@pytest.fixture
def data(settings: Settings) -> DataFolder:
    return open_data(settings)


@pytest.fixture
def capture(data: DataFolder) -> Iterator[Capture]:
    """A backup of the second night, whose publications are read and staged: hostile ones, and some real ones that changed."""
    records = [{**one, "id": one["id"] + 9000} for one in real_records()[:300]] + hostile_records()
    snapshot_of(data, records)
    changed = [{**one, "isbn": "12345"} if one["id"] % 7 == 0 else one for one in records[3:]]
    with data.lease("old"):
        begun = new_capture(data, run="tonight", wanted=["publications", "collections"], now=TONIGHT)
        write_raw(begun, [json.dumps(one) for one in changed])
        staging.stage(begun, "publications")
        files.skip_files(begun)
        yield begun


def published(data: DataFolder, capture: Capture, *, complete: bool = True) -> Snapshot:
    """The snapshot, after another resource was read."""
    write_raw(capture, COLLECTIONS, resource="collections", complete=complete)
    staging.stage(capture, "collections")
    return data.publish(capture, TONIGHT + timedelta(seconds=90))


def begun(settings: Settings, data: DataFolder, capture: Capture) -> ReportProcess:
    return ReportProcess(data, settings.path, capture)


def stored(data: DataFolder, snapshot: Snapshot) -> dict[str, bytes]:
    """The files of the report, without the moment at which it was made."""
    found = {name: data.objects.read(report_key(snapshot, name)) for name in (ISSUES, ISSUE_KEYS, MARKDOWN)}
    return {name: re.sub(rb"Made by [^\n]*", b"", content) for name, content in found.items()}


@pytest.mark.parametrize("complete", [True, False])
def test_it_is_the_report_that_is_made_afterwards(
    settings: Settings, data: DataFolder, capture: Capture, *, complete: bool
) -> None:
    """With residue that is known later, what changed since the night before, and the verdict on the whole snapshot."""
    known, capture.facts.residue = capture.facts.residue, {}
    process = begun(settings, data, capture)
    capture.facts.residue = known
    snapshot = published(data, capture, complete=complete)
    report = process.finish(snapshot)
    files_of_it = stored(data, snapshot)
    afterwards = make_report(data, snapshot, now=NOW)
    assert without_moment(report) == without_moment(afterwards)
    assert files_of_it == stored(data, snapshot)
    assert (report.complete, bool(report.nights)) == (complete, complete)
    assert report.residue_examples
    assert not list(data.path.glob(".report-old*/"))


def without_moment(report: Report) -> Report:
    report.made_at = NOW
    return report


def test_a_process_that_is_killed_costs_the_report_alone(
    settings: Settings, data: DataFolder, capture: Capture
) -> None:
    """The error names the command; nothing is left behind, and that command works."""
    process = begun(settings, data, capture)
    os.kill(process._process.pid, signal.SIGKILL)
    snapshot = published(data, capture)
    with pytest.raises(StorageError, match="`bookferry report old`"):
        process.finish(snapshot)
    assert not list(data.path.glob(".report-old*/"))
    assert make_report(data, snapshot, now=NOW).to_do


def test_a_process_that_fails_says_why(settings: Settings, data: DataFolder, capture: Capture) -> None:
    (capture.path / "publications.parquet").write_bytes(b"no Parquet")
    process = begun(settings, data, capture)
    with pytest.raises(StorageError, match=r"The report was not made: .*publications\.parquet"):
        process.finish(published(data, capture))


def test_a_stop_ends_it_and_leaves_nothing(settings: Settings, data: DataFolder, capture: Capture) -> None:
    """Another report can be made at once."""
    process = begun(settings, data, capture)
    process.end()
    assert process._process.returncode is not None
    assert not list(data.path.glob(".report-old*/"))
    with open_workdir(data, "old"):
        pass
    assert capture.path.exists()


def test_a_killed_backup_leaves_nothing(settings: Settings, data: DataFolder, capture: Capture) -> None:
    """The process ends by itself once nobody waits for it; what a power failure left goes with the next report."""
    (data.path / ".report-old.tables-left").mkdir()
    process = begun(settings, data, capture)
    for pipe in (process._process.stdin, process._process.stdout):  # as the kernel does it
        assert pipe is not None
        pipe.close()
    assert process._process.wait(60) == 0
    assert not list(data.path.glob(".report-old*/"))


def test_only_a_large_library_that_is_read_slowly_has_it(
    settings: Settings, data: DataFolder, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones have their report after the snapshot. Where the machine is the limit, it would delay the backup."""
    with Backup(settings) as library:
        library._begin_report(capture)
        assert not library._reports
        monkeypatch.setattr("pipelines.backup.flow.REPORT_BESIDE", 3)
        monkeypatch.setattr("pipelines.backup.flow.READ_SLOWLY", 3600)
        library._begin_report(capture)
        assert not library._reports
        monkeypatch.setattr("pipelines.backup.flow.READ_SLOWLY", 0)
        capture.facts.wanted = ["publications"]  # nothing is read beside it
        library._begin_report(capture)
        assert not library._reports
        capture.facts.wanted = ["collections", "publications"]
        library._begin_report(capture)
        library._begin_report(capture)
        [process] = library._reports.values()
    assert process._process.returncode is not None  # the end of the run ended it
