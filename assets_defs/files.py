"""The assets of a backup for the content of files: the blobs, and the table with the status of each file."""

from collections.abc import Iterator

import dagster as dg

from assets_defs.backup import PUBLICATIONS, table_spec
from assets_defs.factories import check_spec, tenant_key, tenant_keys
from assets_defs.metadata import MOST_SHOWN, preview, single_values
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import STAGED
from pipelines.store.snapshots.snapshots import Snapshot

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
    """The check of the blobs."""
    yield check_spec(tenant, FILES, KEPT, "The content of every file that the records name is stored.")


def file_result(snapshot: Snapshot) -> dg.MaterializeResult:
    """The files of a published snapshot, with their check."""
    manifest, totals = snapshot.manifest, snapshot.manifest.files
    rows = ((getattr(failure, name) for name in _FAILURE_COLUMNS) for failure in totals.failures)
    listing = sum(facts.requests for facts in manifest.resources.values())
    listing += sum(unreadable.requests for unreadable in manifest.unreadable.values())
    return dg.MaterializeResult(
        asset_key=tenant_key(manifest.tenant, FILES),
        metadata={
            "dagster/row_count": totals.kept,
            **single_values(totals),
            "requests": manifest.requests - listing,
            "failures": preview(_FAILURE_COLUMNS, rows),
        },
        check_results=[
            dg.AssetCheckResult(
                check_name=KEPT,
                passed=not totals.failed,
                description=" ".join(f"{failure.name}: {failure.problem}." for failure in totals.failures[:MOST_SHOWN]),
                metadata={"named": totals.count, "kept": totals.kept, "failed": totals.failed},
            )
        ],
    )
