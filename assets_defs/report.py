"""The report of a snapshot, made after publication. A report that fails does not make the backup fail."""

from collections.abc import Iterator, Sequence

import dagster as dg
import msgspec

from assets_defs.backup import PUBLICATIONS, SNAPSHOT
from assets_defs.factories import tenant_asset
from assets_defs.metadata import preview
from pipelines.backup.flow import Backup
from pipelines.errors import BookferryError
from pipelines.records.advice import label_of
from pipelines.report.pages import Report
from pipelines.service.redaction import outside_text

ASSET = "report"
CHECK = "made"

CHANGES = ("added", "changed", "removed", "new", "solved")
"""Numbers of a report that Dagster plots from night to night: records and issues since the backup before."""

_COLUMNS = ("what to look at", "issues")


def report_assets(tenant: str, resources: Sequence[str]) -> list[dg.AssetsDefinition]:
    """The report of one tenant; none without publications."""
    return [_report_asset(tenant)] if PUBLICATIONS in resources else []


def _report_asset(tenant: str) -> dg.AssetsDefinition:
    @tenant_asset(
        tenant,
        ASSET,
        kinds={"html", "excel"},
        made_from=[SNAPSHOT],
        output_required=False,
        checks={CHECK: "The report of the newest snapshot could be made."},
    )
    def report(backup: dg.ResourceParam[Backup]) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
        """The findings of the newest snapshot that concern librarians: invalid identifiers, duplicates, missing files."""
        yield from report_results(backup, tenant)

    return report


def report_results(backup: Backup, tenant: str) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
    """Make the report of the newest snapshot. An error is a red check: the snapshot is complete and published, and its backup succeeded."""
    try:
        report = backup.report(tenant)
    except Exception as error:  # noqa: BLE001  see above
        yield _check(passed=False, reason=failure_reason(error))
        return
    yield _check(passed=True, reason=f"The report of {report.snapshot}.")
    yield dg.MaterializeResult(metadata=_metadata(report))


def failure_reason(error: Exception) -> str:
    """What a red check says of an error: its message, or that it is a mistake of ours."""
    text = outside_text(error, 2000)
    if isinstance(error, BookferryError):
        return text
    return f"{type(error).__name__}: {text}. This is a mistake in Bookferry: please report it with the lines of the run's log."


def _check(*, passed: bool, reason: str) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(check_name=CHECK, passed=passed, severity=dg.AssetCheckSeverity.WARN, description=reason)


def _metadata(report: Report) -> dict[str, dg.MetadataValue | int | str | bool]:
    rows = ((label_of(group.rule, group.type), group.issues) for group in report.issue_kinds)
    changes = report.nights[-1].last_night if report.nights else None
    since_last_night = msgspec.to_builtins(changes) if changes else {}
    return {
        **{name: since_last_night[name] for name in CHANGES if name in since_last_night},
        "what_to_look_at": preview(_COLUMNS, rows),
        "to_do": report.to_do,
        "repaired": report.repaired,
        "snapshot": report.snapshot,
        "complete": report.complete,
        "page": dg.MetadataValue.path(report.paths.html),
        "issues": dg.MetadataValue.path(report.paths.issues),
        "workbook": dg.MetadataValue.path(report.paths.workbook),
    }
