"""Where the reports of snapshots are kept: beside the snapshots, which never change, in `<data>/reports/tenant=…/snapshot=…/`."""

from __future__ import annotations

from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

REPORTS = "reports"

MARKDOWN, HTML, ISSUES = "report.md", "report.html", "issues.tsv"


def report_key(snapshot: Snapshot, name: str = "") -> str:
    """The folder of a snapshot's report, or one of its files."""
    folder = snapshot.key.replace("snapshots/", f"{REPORTS}/", 1)
    return f"{folder}/{name}" if name else folder


def page_of(data: DataFolder, snapshot: Snapshot) -> str | None:
    """Where the page of a snapshot's report is; none where it has none."""
    key = report_key(snapshot, HTML)
    return data.objects.address_of(key) if data.objects.size(key) is not None else None


def remove_report(data: DataFolder, snapshot: Snapshot) -> None:
    """Remove all of a report."""
    for entry in list(data.objects.below(report_key(snapshot))):
        data.objects.delete(entry.key)


def forget_reports(data: DataFolder) -> None:
    """Remove the reports of snapshots that are gone."""
    there = {key.replace("snapshots/", f"{REPORTS}/", 1) for key in data.snapshot_keys()}
    for entry in list(data.objects.below(REPORTS)):
        if entry.key.rpartition("/")[0] not in there:
            data.objects.delete(entry.key)
