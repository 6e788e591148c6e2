"""The assets of a backup for the content of files: the blobs, and the table with the status of each file."""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets_defs.backup import PUBLICATIONS, required_spec, run_name, staged_result, stop_explained, table_spec
from assets_defs.factories import FIRST, check_spec, tenant_key, tenant_keys, tenant_step
from assets_defs.metadata import preview
from pipelines.backup.flow import Backup
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import STAGED
from pipelines.store.snapshots.captures import Capture, FileTotals

FILES = "files"
"""The asset of the blobs."""

_FAILURE_COLUMNS = ("publication_id", "kind", "asset_id", "name", "problem")


def file_assets(tenant: str, resources: Sequence[str]) -> list[dg.AssetsDefinition]:
    """The file assets of one tenant; none without publications."""
    return [_file_assets(tenant)] if PUBLICATIONS in resources else []


def _file_assets(tenant: str) -> dg.AssetsDefinition:
    staged = [table.name for table in STAGED[PUBLICATIONS] if table != PUBLICATION_FILES]

    @tenant_step(
        tenant,
        FILES,
        specs=[
            dg.AssetSpec(
                tenant_key(tenant, FILES),
                deps=tenant_keys(tenant, staged),
                kinds={"file"},
                description="The content of every file and cover, stored once under its SHA-256.",
            ),
            table_spec(tenant, PUBLICATION_FILES, [f"raw_{PUBLICATIONS}", *staged]),
        ],
        check_specs=[
            check_spec(tenant, FILES, "every_file_kept", "The content of every file that the records name is stored."),
            required_spec(tenant, PUBLICATION_FILES),
        ],
        op_tags=FIRST,
    )
    def files(context: dg.AssetExecutionContext, backup: dg.ResourceParam[Backup]) -> Iterator[dg.MaterializeResult]:
        with stop_explained(context, tenant, backup.settings.tenant(tenant).resume_hours):
            capture = backup.fetch_files(tenant, run_name(context))
        yield _blobs_result(capture, tenant_key(tenant, FILES))
        yield staged_result(capture, PUBLICATIONS, PUBLICATION_FILES)

    return files


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
                check_name="every_file_kept",
                passed=not totals.failed,
                metadata={"named": totals.count, "kept": totals.kept, "failed": totals.failed},
            )
        ],
    )
