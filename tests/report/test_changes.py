"""What changed since the last night and the last week: counted from the snapshots, and remembered for the chart."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from pipelines.report.build import make_report
from pipelines.report.history import MOST_NIGHTS, Changes
from pipelines.report.pages import Report
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.maintenance.reports import HISTORY, REPORTS
from pipelines.store.maintenance.results import remove_orphans
from pipelines.store.maintenance.retention import prune
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.report.library import NOW, snapshot_of
from tests.store.conftest import bucket, objects, s3, shared_s3, stored
from tests.store.snapshot_factory import STARTED_AT, rewrite

__all__ = ["bucket", "objects", "s3", "shared_s3", "stored"]  # fixtures

GOOD, BAD, OTHER_BAD = "978-0-306-40615-7", "978-0-306-40615-8", "978-0-306-40615-9"


def books(*isbns: str | None) -> list[dict[str, Any]]:
    """Records 1, 2, …; one for each ISBN, and none where that is None."""
    return [
        {"id": number, "title": f"Title {number}", "isbn": isbn} for number, isbn in enumerate(isbns, start=1) if isbn
    ]


def night(data: DataFolder, day: int, *isbns: str | None, **options: Any) -> Snapshot:
    return snapshot_of(data, books(*isbns), now=STARTED_AT + timedelta(days=day), **options)


def report(data: DataFolder, snapshot: Snapshot) -> Report:
    return make_report(data, snapshot, now=NOW)


def page_of(report: Report) -> str:
    return " ".join(Path(report.paths.html).read_text("utf-8").split())


def test_since_the_last_night_and_the_last_week(stored: DataFolder) -> None:
    """In a folder and in a bucket. An issue that gets another wrong value is still the same issue."""
    report(stored, night(stored, 0, GOOD, BAD, BAD, GOOD.replace("7", "x")))
    report(stored, night(stored, 6, GOOD, BAD, GOOD, "123"))
    last_report = report(stored, night(stored, 7, None, OTHER_BAD, GOOD, "0-471-10799-9", BAD))
    newest = last_report.nights[-1]
    # 1 went, 2 has another wrong number, 4 was corrected, 5 came; 3 and 1 had the same ISBN the night before
    assert newest.last_night == Changes(since="20261126T020000Z", added=1, changed=2, removed=1, new=1, solved=3)
    assert newest.last_week is not None
    assert (newest.last_week.since, newest.last_week.added, newest.last_week.changed) == ("20261120T020000Z", 1, 3)
    assert [night.snapshot[:8] for night in last_report.nights] == ["20261120", "20261126", "20261127"]


@pytest.mark.long
def test_a_partial_snapshot_is_compared_with_none_and_none_with_it(data: DataFolder) -> None:
    """What it lacks may still be in the library."""
    report(data, night(data, 0, GOOD, BAD))
    partial = report(data, night(data, 1, GOOD, complete=False))
    assert partial.nights == []
    assert "it is not compared" in page_of(partial)
    last_report = report(data, night(data, 2, GOOD, BAD))
    assert last_report.nights[-1].last_night == Changes(
        since="20261120T020000Z", added=0, changed=0, removed=0, new=0, solved=0
    )
    assert len(last_report.nights) == 2


@pytest.mark.long
def test_with_a_night_without_a_report_only_records_are_compared(data: DataFolder) -> None:
    """A snapshot of an earlier version: records can be compared, issues cannot, and the page says so."""
    night(data, 0, GOOD)
    last_report = report(data, night(data, 1, GOOD, BAD))
    [newest] = last_report.nights
    assert newest.last_night == Changes(since="20261120T020000Z", added=1, changed=0, removed=0)
    assert "no report with which issues could be compared" in page_of(last_report)


@pytest.mark.long
def test_what_pruned_snapshots_told_stays(data: DataFolder) -> None:
    """The chart needs no snapshot but the two that are compared; the numbers of the others are in a small file."""
    for day in range(4):
        report(data, night(data, day, *[GOOD] * (day + 1)))
    prune(data, ["old"], RetentionSettings(keep_last=1), ZoneInfo("UTC"), tenant=None, dry_run=False)
    assert len(data.snapshots("old")) == 1
    last_report = report(data, night(data, 4, *[GOOD] * 5))
    assert [night.publications for night in last_report.nights] == [1, 2, 3, 4, 5]
    assert [night.last_night.added if night.last_night else None for night in last_report.nights] == [None, 1, 1, 1, 1]
    assert Path(last_report.paths.html).read_text("utf-8").count("<summary>") == 1


@pytest.mark.parametrize(("day", "is_compared"), [(6, False), (7, True), (14, True), (15, False)])
def test_about_a_week_before(data: DataFolder, day: int, is_compared: bool) -> None:
    """Six and a half days to two weeks; further back is no last week."""
    report(data, night(data, 0, GOOD))
    last_report = report(data, night(data, day, GOOD))
    assert (last_report.nights[-1].last_week is not None) == is_compared
    assert ("no complete snapshot of about a week before" in page_of(last_report)) != is_compared


@pytest.mark.long
def test_issues_that_came_with_other_rules_are_named(data: DataFolder) -> None:
    """The record did not change, so the rules did. What depends on other records, such as a duplicate, is not counted so."""
    earlier = night(data, 0, BAD, GOOD)

    def all_valid(table: pa.Table) -> pa.Table:
        valid = pa.array(["valid"] * table.num_rows, table["verdict"].type)
        return table.set_column(table.schema.get_field_index("verdict"), table.schema.field("verdict"), valid)

    rewrite(earlier, "publication_identifiers", all_valid)
    assert report(data, earlier).to_do == 0
    last_report = report(data, night(data, 1, BAD, GOOD, GOOD))
    changes = last_report.nights[-1].last_night
    assert changes is not None
    assert (changes.new, changes.new_by_rules, changes.added) == (3, 1, 1)
    assert "1 issue came and 0 went although their records stayed" in page_of(last_report)


OF_ANOTHER = '{"base_url": "https://elsewhere.example.org", "api": "v2", "nights": [{"snapshot": "x"}]}'


@pytest.mark.long
@pytest.mark.parametrize("content", ["{", OF_ANOTHER], ids=["damaged", "of another library"])
def test_a_report_that_is_made_again_replaces_its_night(data: DataFolder, content: str) -> None:
    """A history that cannot be used begins anew."""
    first, second = night(data, 0, GOOD), night(data, 1, GOOD, BAD)
    data.objects.replace(f"reports/tenant=old/{HISTORY}", content.encode())
    for snapshot in (first, second, first, second):
        last_report = report(data, snapshot)
    assert [snapshot.snapshot for snapshot in last_report.nights] == [
        snapshot.manifest.snapshot for snapshot in (first, second)
    ]
    assert len(report(data, first).nights) == 1, "what came later is no part of an earlier report"


@pytest.mark.long
def test_the_history_is_bounded(data: DataFolder) -> None:
    """And goes with the last snapshot."""
    key = f"reports/tenant=old/{HISTORY}"
    snapshot = night(data, 0, GOOD)
    nights = [
        {"snapshot": (STARTED_AT - timedelta(days=day)).strftime("%Y%m%dT%H%M%SZ"), "publications": 1}
        for day in range(1, 500)
    ]
    history = {"base_url": snapshot.manifest.base_url, "api": "v2", "nights": nights}
    data.objects.replace(key, json.dumps(history).encode())
    assert len(report(data, snapshot).nights) == 90
    assert len(json.loads(data.objects.read(key))["nights"]) == MOST_NIGHTS
    data.objects.hide(snapshot.key)
    data.objects.clear("snapshots/tenant=old")
    remove_orphans(data, REPORTS)
    assert list(data.objects.below("reports")) == []
