"""Makes the report of a snapshot: three files beside the snapshots, from one pass over its tables.

A report can be made again at any time: it needs the snapshot only, and does not change it. Two processes that make the same report wait
for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from filelock import FileLock

from pipelines.errors import ConfigurationError
from pipelines.report.issues import IssueCounts, IssueKind, issues_of, write_issues
from pipelines.report.pages import ReportContext, html_of, markdown_of, plots_of
from pipelines.report.plots import as_image
from pipelines.store.durable import storage_errors, temporary_folder
from pipelines.store.findings import Figures, open_findings
from pipelines.store.maintenance.reports import HTML, ISSUES, MARKDOWN, remove_report, report_key
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot


class Paths(msgspec.Struct):
    """Paths or addresses of the files of a report."""

    html: str
    markdown: str
    issues: str


class Report(msgspec.Struct, kw_only=True):
    """A finished report."""

    context: ReportContext
    paths: Paths

    @property
    def snapshot(self) -> str:
        """`tenant/snapshot`."""
        return f"{self.context.manifest.tenant}/{self.context.manifest.snapshot}"

    @property
    def complete(self) -> bool:
        """Whether the snapshot is complete."""
        return self.context.manifest.complete

    @property
    def to_do(self) -> int:
        """Number of issues for a person."""
        return self.context.to_do

    @property
    def mended(self) -> int:
        """Number of lines about values that Bookferry repaired."""
        return self.context.mended

    @property
    def issue_kinds(self) -> list[IssueKind]:
        """The kinds of issues for a person, the most frequent first."""
        return self.context.issue_kinds

    @property
    def counts(self) -> dict[str, int]:
        """Rule or finding → number of issues for a person."""
        counts = Counter[str]()
        for kind in self.issue_kinds:
            counts[kind.rule] += kind.issues
        return dict(counts.most_common())

    @property
    def figures(self) -> Figures:
        """The numbers."""
        return self.context.figures


def make_report(data: DataFolder, snapshot: Snapshot, *, now: datetime) -> Report:
    """Make the report of a snapshot, and replace an earlier one."""
    if not snapshot.holds_publications:
        raise ConfigurationError(
            f"{snapshot.name} has no publications, so it has no report. `bookferry snapshots list` lists the others."
        )
    with _workdir(data, snapshot) as workdir:
        context = _collect(data, snapshot, workdir / ISSUES, workdir / "spilled", now)
        data.objects.replace_file(report_key(snapshot, ISSUES), workdir / ISSUES)
        data.objects.replace(report_key(snapshot, MARKDOWN), markdown_of(context).encode())
        data.objects.replace(report_key(snapshot, HTML), html_of(context).encode())
    if snapshot.key not in data.snapshot_keys(snapshot.manifest.tenant):  # pruned meanwhile
        remove_report(data, snapshot)
    html, markdown, issues = (data.objects.address_of(report_key(snapshot, name)) for name in (HTML, MARKDOWN, ISSUES))
    return Report(context=context, paths=Paths(html, markdown, issues))


def pictures_of(report: Report) -> str:
    """The plots of a report as Markdown with the images inside."""
    return "\n\n".join(f"![{plot.title}]({as_image(plot)})" for plot in plots_of(report.context).values() if plot.bars)


def _collect(data: DataFolder, snapshot: Snapshot, issues: Path, spilled: Path, now: datetime) -> ReportContext:
    tally = IssueCounts()
    with open_findings(data, snapshot, spilled) as findings:
        with storage_errors(issues), issues.open("w", encoding="utf-8", newline="") as file:
            write_issues(tally.counted(issues_of(findings.each())), file)
        figures = findings.figures()
        return ReportContext(
            manifest=snapshot.manifest,
            figures=figures,
            issue_kinds=tally.issue_kinds,
            to_do=tally.to_do,
            mended=tally.mended,
            shared=findings.shared_identifiers(),
            same_titles=findings.same_titles(),
            residue_examples=findings.residue_examples(figures.residue),
            made_at=now.astimezone(UTC),
        )


@contextmanager
def _workdir(data: DataFolder, snapshot: Snapshot) -> Iterator[Path]:
    """A temporary folder for files whose size grows with the library (I11)."""
    data.prepare()
    workdir = data.path / f".report-{snapshot.manifest.tenant}"
    with storage_errors(workdir), FileLock(f"{workdir}.lock"), temporary_folder(workdir):
        yield workdir
