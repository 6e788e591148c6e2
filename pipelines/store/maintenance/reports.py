"""Where reports are stored: beside the snapshots, which never change, in `<data>/reports/tenant=…/snapshot=…/`."""

from __future__ import annotations

from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

REPORTS = "reports"

HTML, ISSUES, WORKBOOK = "report.html", "issues.tsv", "issues.xlsx"
"""The files of a report. The next reports compare their issues.tsv with this one."""

HISTORY = "history.json"
"""What changed in a library from night to night; it outlives the snapshots."""


def report_key(snapshot: Snapshot, name: str = "") -> str:
    """The key of a snapshot's report, or of one of its files."""
    folder = snapshot.key.replace("snapshots/", f"{REPORTS}/", 1)
    return f"{folder}/{name}" if name else folder


def history_key(tenant: str) -> str:
    """The key of the history of a tenant."""
    return f"{REPORTS}/tenant={tenant}/{HISTORY}"


def report_address(data: DataFolder, snapshot: Snapshot) -> str | None:
    """The address of the HTML page of a snapshot's report; None where there is none."""
    key = report_key(snapshot, HTML)
    return data.objects.address_of(key) if data.objects.size(key) is not None else None


def remove_report(data: DataFolder, snapshot: Snapshot) -> None:
    """Remove all files of a report."""
    for entry in list(data.objects.below(report_key(snapshot))):
        data.objects.delete(entry.key)
