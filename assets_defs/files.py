"""The assets of a backup that are about the content of files: the blobs, and the table that says what became of each file."""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets_defs.backup import PUBLICATIONS, no_table, required_spec, run_name, staged_table, table_spec
from assets_defs.metadata import preview
from assets_defs.stops import stop_explained
from pipelines.backup.flow import Backup
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import STAGED
from pipelines.store.snapshots.captures import Capture, FileTotals

_FAILURES = ("publication_id", "kind", "asset_id", "name", "problem")


def file_assets(tenant: str, resources: Sequence[str]) -> list[dg.AssetsDefinition]:
    """The assets of one tenant, where its publications are backed up."""
    return [_file_assets(tenant)] if PUBLICATIONS in resources else []


def _file_assets(tenant: str) -> dg.AssetsDefinition:
    blobs, table = dg.AssetKey([tenant, "files"]), dg.AssetKey([tenant, PUBLICATION_FILES.name])
    staged = [one.name for one in STAGED[PUBLICATIONS] if one != PUBLICATION_FILES]

    @dg.multi_asset(
        name=f"{tenant}__files",
        group_name=tenant,
        pool=tenant,
        specs=[
            dg.AssetSpec(
                blobs,
                deps=[dg.AssetKey([tenant, name]) for name in staged],
                kinds={"file"},
                description="The content of every file and cover, kept once under its SHA-256.",
            ),
            table_spec(tenant, PUBLICATION_FILES, [f"raw_{PUBLICATIONS}", *staged]),
        ],
        check_specs=[
            dg.AssetCheckSpec(
                "every_file_kept",
                asset=blobs,
                description="Of every file that the records name the content is here (I12).",
            ),
            required_spec(tenant, PUBLICATION_FILES),
        ],
    )
    def files(context: dg.AssetExecutionContext, library: dg.ResourceParam[Backup]) -> Iterator[dg.MaterializeResult]:
        with stop_explained(context, tenant, library.settings.tenant(tenant)):
            capture = library.fetch_files(tenant, run_name(context))
        yield _blobs(capture, blobs)
        unreadable = capture.facts.unreadable.get(PUBLICATIONS)
        yield no_table(unreadable, table) if unreadable else staged_table(capture, PUBLICATION_FILES, table)

    return files


def _blobs(capture: Capture, key: dg.AssetKey) -> dg.MaterializeResult:
    totals = capture.facts.files or FileTotals()
    rows = ((getattr(one, name) for name in _FAILURES) for one in totals.failures)
    return dg.MaterializeResult(
        asset_key=key,
        metadata={
            "dagster/row_count": totals.kept,
            "bytes": totals.bytes,
            "new": totals.new,
            "failed": totals.failed,
            "not_fetched": totals.not_fetched,
            "requests": capture.facts.files_requests,
            "failures": preview(_FAILURES, rows),
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
