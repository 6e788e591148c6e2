"""Where reports are, for how long, and of what there is none."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from pipelines.errors import ConfigurationError
from pipelines.report.making import make_report
from pipelines.store.retention import Policy, prune
from pipelines.store.snapshots import DataFolder
from tests.report.library import NOW, lines_of, snapshot_of
from tests.store.conftest import objects, s3, s3_of_all, stored
from tests.store.steps import NIGHT, files_below, make_snapshot

__all__ = ["objects", "s3", "s3_of_all", "stored"]  # fixtures

RECORDS = [{"id": number, "title": "A title", "published_on": "1984-06-08", "isbn": "9684192914"} for number in (1, 2)]


def test_it_lies_beside_the_snapshots_and_is_made_anew(stored: DataFolder) -> None:
    """In a folder and in a bucket; the snapshot stays as it was, and nothing else is left."""
    snapshot = snapshot_of(stored, RECORDS)
    before = {entry.key: entry.size for entry in stored.objects.below(snapshot.key)}
    for _again in range(2):
        report = make_report(stored, snapshot, now=NOW)
        folder = f"reports/tenant=old/snapshot={snapshot.manifest.snapshot}"
        names = [f"{folder}/{name}" for name in ("issues.tsv", "report.html", "report.md")]
        assert [entry.key for entry in stored.objects.below("reports")] == names
        assert report.paths.html == stored.objects.address_of(names[1])
    assert {entry.key: entry.size for entry in stored.objects.below(snapshot.key)} == before
    assert [name for name in files_below(stored.path) if "report-" in name and not name.endswith(".lock")] == []


def test_what_a_report_that_was_killed_left_goes(data: DataFolder) -> None:
    snapshot = snapshot_of(data, RECORDS)
    left = data.path / ".report-old" / "spilled"
    left.mkdir(parents=True)
    report = make_report(data, snapshot, now=NOW)
    assert not left.parent.exists()
    assert [line["field"] for line in lines_of(report)] == ["isbn", "isbn", "title", "title"]


def test_prune_takes_the_reports_of_what_it_removes(data: DataFolder) -> None:
    """And no others."""
    snapshots = [snapshot_of(data, RECORDS, now=NIGHT + timedelta(days=day)) for day in range(3)]
    for snapshot in snapshots:
        make_report(data, snapshot, now=NOW)
    prune(data, ["old"], Policy(last=1), ZoneInfo("UTC"), tenant=None, dry_run=True)
    assert len(list(data.objects.below("reports"))) == 9
    prune(data, ["old"], Policy(last=1), ZoneInfo("UTC"), tenant=None, dry_run=False)
    left = {entry.key.rpartition("/")[0] for entry in data.objects.below("reports")}
    assert left == {f"reports/tenant=old/snapshot={snapshots[-1].manifest.snapshot}"}


def test_a_snapshot_without_publications_has_none(data: DataFolder) -> None:
    snapshot = make_snapshot(data, ['{"id": 1, "name": "Hall"}'], resource="locations")
    with pytest.raises(ConfigurationError, match="holds no publications"):
        make_report(data, snapshot, now=NOW)
