"""Makes the report of a snapshot: two tables and a page beside the snapshots, from one pass over its tables.

A report can be made again at any time: it needs the snapshot only, and does not change it. Two processes that make the same report wait
for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from pipelines.errors import ConfigurationError
from pipelines.records.identifiers.verdicts import REPAIRED
from pipelines.report.changes import changes_between
from pipelines.report.history import Night, earlier_snapshots, of_last_week, recent_nights, remember
from pipelines.report.issues import IssueKind, count_issues, issues_of
from pipelines.report.pages import Paths, Report, html_of
from pipelines.report.tables import open_issue_tables
from pipelines.store.durable import storage_errors, temporary_folder
from pipelines.store.findings import open_findings, residue_examples
from pipelines.store.maintenance.reports import HTML, ISSUES, WORKBOOK, remove_report, report_key
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

_SPILLED = "spilled"
"""Folder for what DuckDB does not keep in memory."""


def make_report(data: DataFolder, snapshot: Snapshot, *, now: datetime, record_url: str | None = None) -> Report:
    """Make the report of a snapshot, and replace an earlier one. `record_url`: the address of a record's page, with `{id}`."""
    if not snapshot.holds_publications:
        raise ConfigurationError(
            f"{snapshot.name} has no publications, so it has no report. `bookferry snapshots list` lists the others."
        )
    with _open_workdir(data, snapshot.manifest.tenant) as workdir:
        report = _collect(data, snapshot, workdir, now=now, record_url=record_url)
        _store_report(data, snapshot, report, workdir)
    return report


def _store_report(data: DataFolder, snapshot: Snapshot, report: Report, workdir: Path) -> None:
    """Store the files of a report, whose tables are in `workdir`, beside the snapshots."""
    for name in (ISSUES, WORKBOOK):
        data.objects.replace(report_key(snapshot, name), workdir / name)
    data.objects.replace(report_key(snapshot, HTML), html_of(report).encode())
    if report.nights:
        remember(data, snapshot, report.nights[-1])
    if snapshot.key not in data.snapshot_keys(snapshot.manifest.tenant):  # pruned meanwhile
        remove_report(data, snapshot)


def _collect(data: DataFolder, snapshot: Snapshot, workdir: Path, *, now: datetime, record_url: str | None) -> Report:
    """Write the tables of issues into `workdir`, and collect the content of the report. Nothing is stored yet."""
    kinds, spilled = dict[tuple[str, str], IssueKind](), workdir / _SPILLED
    with open_findings(data, snapshot, spilled) as findings:
        with open_issue_tables(workdir) as tables:
            for issue in count_issues(issues_of(findings.each()), kinds):
                tables.write(issue.line(record_url))
        figures, repaired = findings.figures(), kinds.pop((REPAIRED, ""), None)
        report = Report(
            paths=Paths(*(data.objects.address_of(report_key(snapshot, name)) for name in (HTML, ISSUES, WORKBOOK))),
            manifest=snapshot.manifest,
            record_url=record_url,
            figures=figures,
            issue_kinds=sorted(kinds.values(), key=lambda kind: -kind.issues),
            repaired=repaired.issues if repaired else 0,
            shared=findings.shared_identifiers(),
            same_titles=findings.same_titles(),
            residue_examples={},
            made_at=now.astimezone(UTC),
        )
    report.residue_examples = residue_examples(data, snapshot, figures.residue, spilled)
    report.nights = _nights(data, snapshot, report.to_do, workdir / ISSUES, spilled)
    return report


def _nights(data: DataFolder, snapshot: Snapshot, to_do: int, issues: Path, spilled: Path) -> list[Night]:
    """The recent nights, and last what changed since the last night and the last week; none for a partial snapshot."""
    if not snapshot.manifest.complete:
        return []
    earlier = earlier_snapshots(data, snapshot)
    night = Night(snapshot=snapshot.manifest.snapshot, publications=snapshot.counts["publications"], issues=to_do)
    if earlier:
        night.last_night = changes_between(data, earlier[-1], snapshot, issues, spilled)
    if (older := of_last_week(earlier, snapshot)) is not None:
        is_same = older is earlier[-1]
        night.last_week = night.last_night if is_same else changes_between(data, older, snapshot, issues, spilled)
    return recent_nights(data, snapshot, night)


@contextmanager
def _open_workdir(data: DataFolder, tenant: str) -> Iterator[Path]:
    """An empty folder for the table of issues and what DuckDB spills, which grow with the library. Another process waits until it ends."""
    data.prepare()
    workdir = data.path / f".report-{tenant}"
    with storage_errors(workdir), FileLock(f"{workdir}.lock"), temporary_folder(workdir):
        yield workdir
