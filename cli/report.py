"""`bookferry report`: makes the report of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import RenderableType

from cli.output import Answer, ReadableTable, warning
from cli.snapshots import tenant_snapshot
from pipelines.humanize import counted
from pipelines.records.advice import label_of
from pipelines.report.build import make_report
from pipelines.report.issues import safe_text
from pipelines.report.pages import Report
from pipelines.settings.settings import Settings
from pipelines.store.stores import open_data

MOST_PRINTED = 15
"""Groups of issues to list; the page lists all."""


def report_on(settings: Settings, *, tenant: str, snapshot: str | None) -> Answer:
    """Make the report of a tenant's newest complete snapshot or of a named one."""
    data = open_data(settings)
    chosen = tenant_snapshot(data, tenant, snapshot)
    library = settings.tenants.get(tenant)  # a snapshot outlives its table in bookferry.toml
    report = make_report(data, chosen, now=datetime.now(UTC), record_url=library.record_url if library else None)
    return Answer(document(report), _lines(report))


def document(report: Report) -> dict[str, Any]:
    """The JSON document of a report: paths and numbers. Scripts rely on its keys."""
    return {
        "snapshot": report.snapshot,
        "complete": report.complete,
        "to_do": report.to_do,
        "repaired": report.repaired,
        "issues": report.counts,
        "figures": _redacted(msgspec.to_builtins(report.figures)),
        "last_night": _changes(report, "last_night"),
        "last_week": _changes(report, "last_week"),
        "record_url": report.record_url,
        "paths": report.paths,
    }


def _changes(report: Report, since: str) -> Any:
    """What changed since an earlier snapshot; null where there is none, or where this one is partial."""
    return getattr(report.nights[-1], since) if report.nights else None


def _redacted(*figures: Any) -> Any:
    """The sum of figures. Names from a library are redacted (I10); those that are then the same have the sum of their numbers."""
    if not isinstance(figures[0], dict):
        return sum(figures) if len(figures) > 1 else figures[0]
    values: dict[str, list[Any]] = {}
    for name, value in (entry for part in figures for entry in part.items()):
        values.setdefault(safe_text(name), []).append(value)
    return {name: _redacted(*same) for name, same in values.items()}


def _lines(report: Report) -> Iterator[RenderableType]:
    rows = [(label_of(kind.rule, kind.type), f"{kind.issues:,}") for kind in report.issue_kinds[:MOST_PRINTED]]
    if rows:
        yield ReadableTable(("what to look at", "issues"), rows, right=("issues",))
    if len(report.issue_kinds) > MOST_PRINTED:
        yield f"and {counted(len(report.issue_kinds) - MOST_PRINTED, 'more group')} of issues on the page"
    if not report.complete:
        yield warning(f"{report.snapshot} is partial: the numbers may be too small.")
    yield from (report.paths.issues, report.paths.workbook, report.paths.html)
    issues = f"{counted(report.to_do, 'issue')} to look at in {counted(report.figures.publications, 'publication')}"
    yield f"Report of {report.snapshot}: {issues}; {report.repaired:,} that Bookferry repaired."
