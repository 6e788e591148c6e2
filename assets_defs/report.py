"""The report of a snapshot, made after it is published. Whatever becomes of the report, the backup is what it is."""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets_defs.backup import PUBLICATIONS
from assets_defs.metadata import preview
from pipelines.backup.flow import REPORTED, Backup
from pipelines.records.advice import label_of
from pipelines.report.build import Report, pictures_of
from pipelines.service.redaction import outside_text

ASSET = "report"
CHECK = "made"

_COLUMNS = ("what to look at", "issues")


def report_assets(tenant: str, resources: Sequence[str]) -> list[dg.AssetsDefinition]:
    """The report of one tenant, where its publications are backed up."""
    return [_report_asset(tenant)] if PUBLICATIONS in resources else []


def _report_asset(tenant: str) -> dg.AssetsDefinition:
    key = dg.AssetKey([tenant, ASSET])

    @dg.asset(
        key=key,
        group_name=tenant,
        kinds={"markdown", "csv"},
        pool=tenant,
        deps=[dg.AssetKey([tenant, "snapshot"])],
        output_required=False,
        check_specs=[
            dg.AssetCheckSpec(CHECK, asset=key, description="The report of the newest snapshot could be made.")
        ],
    )
    def report(library: dg.ResourceParam[Backup]) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
        """What librarians may want to look at in the newest snapshot: invalid identifiers, duplicates, missing files."""
        try:
            made = library.report(tenant)
        except Exception as error:  # noqa: BLE001  the snapshot is whole and published: nothing here makes its backup fail
            yield _check(passed=False, metadata={"error": f"{type(error).__name__}: {outside_text(error, 2000)}"})
            return
        if made is None:
            why = f"More than {REPORTED:,} publications: `bookferry report {tenant}` makes the report, in a process of its own."
            yield _check(passed=True, metadata={"not made": why})
            return
        yield _check(passed=True, metadata={"snapshot": made.snapshot})
        yield dg.MaterializeResult(metadata=_metadata(made))

    return report


def _check(*, passed: bool, metadata: dict[str, str]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=CHECK, passed=passed, severity=dg.AssetCheckSeverity.WARN, metadata=dict(metadata)
    )


def _metadata(made: Report) -> dict[str, dg.MetadataValue | int | str | bool]:
    rows = ((label_of(one.rule, one.type), one.issues) for one in made.issue_kinds)
    return {
        "picture": dg.MetadataValue.md(pictures_of(made)),
        "what_to_look_at": preview(_COLUMNS, rows),
        "to_do": made.to_do,
        "mended": made.mended,
        "snapshot": made.snapshot,
        "complete": made.complete,
        "page": dg.MetadataValue.path(made.paths.html),
        "issues": dg.MetadataValue.path(made.paths.issues),
        "markdown": dg.MetadataValue.path(made.paths.markdown),
    }
