"""The assets of a backup for the content of files: the blobs, and the table with the status of each file."""

from collections.abc import Iterator

import dagster as dg

from assets_defs.backup import PUBLICATIONS, required_spec, staged_result, table_spec
from assets_defs.factories import check_spec, tenant_key, tenant_keys
from assets_defs.metadata import MOST_SHOWN, preview
from pipelines.backup.flow import Backup
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import STAGED
from pipelines.store.snapshots.captures import Capture, FileTotals

FILES = "files"
"""The asset of the blobs."""

KEPT = "every_file_kept"

_FAILURE_COLUMNS = ("publication_id", "kind", "asset_id", "name", "problem")


def file_specs(tenant: str) -> Iterator[dg.AssetSpec]:
    """The assets of the files."""
    staged = [table.name for table in STAGED[PUBLICATIONS] if table != PUBLICATION_FILES]
    yield dg.AssetSpec(
        tenant_key(tenant, FILES),
        deps=tenant_keys(tenant, staged),
        kinds={"file"},
        description="The content of every file and cover, stored once under its SHA-256.",
        skippable=True,
    )
    yield table_spec(tenant, PUBLICATION_FILES, [f"raw_{PUBLICATIONS}", *staged])


def file_checks(tenant: str) -> Iterator[dg.AssetCheckSpec]:
    """The checks of these assets."""
    yield check_spec(tenant, FILES, KEPT, "The content of every file that the records name is stored.")
    yield required_spec(tenant, PUBLICATION_FILES)


def file_results(backup: Backup, tenant: str, run: str) -> Iterator[dg.MaterializeResult]:
    """Fetch the files of the publications that the same run has read."""
    capture = backup.fetch_files(tenant, run)
    yield _blobs_result(capture, tenant_key(tenant, FILES))
    yield staged_result(capture, PUBLICATIONS, PUBLICATION_FILES)


def _blobs_result(capture: Capture, key: dg.AssetKey) -> dg.MaterializeResult:
    totals = capture.facts.files or FileTotals()
    rows = ((getattr(failure, name) for name in _FAILURE_COLUMNS) for failure in totals.failures)
    return dg.MaterializeResult(
        asset_key=key,
        metadata={
            "dagster/row_count": totals.kept,
            "bytes": totals.bytes,
            "new": totals.new,
            "failed": totals.failed,
            "not_fetched": totals.not_fetched,
            "requests": capture.facts.files_requests,
            "failures": preview(_FAILURE_COLUMNS, rows),
        },
        check_results=[
            dg.AssetCheckResult(
                asset_key=key,
                check_name=KEPT,
                passed=not totals.failed,
                description=" ".join(f"{failure.name}: {failure.problem}." for failure in totals.failures[:MOST_SHOWN]),
                metadata={"named": totals.count, "kept": totals.kept, "failed": totals.failed},
            )
        ],
    )
