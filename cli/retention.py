"""`bookferry snapshots prune`: removes old snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import msgspec
from rich.console import RenderableType

from cli.notify import notifying
from cli.output import Answer, ReadableTable
from pipelines.backup.pruning import prune_as_configured
from pipelines.humanize import counted, size
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.retention import PruneResult
from pipelines.store.stores import open_data


def prune_snapshots(settings: Settings, *, tenant: str | None, dry_run: bool) -> Answer:
    """Remove the snapshots of one tenant or of all that the configured policy does not keep."""
    data = open_data(settings)
    if tenant is not None and not data.snapshot_keys(tenant):
        settings.tenant(tenant)
    quietly = dry_run or settings.retention is None
    with nullcontext() if quietly else notifying(settings, "retention", tenant or ""):
        pruning = prune_as_configured(settings, data, tenant=tenant, dry_run=dry_run)
    return Answer({**msgspec.to_builtins(pruning), "bytes": pruning.bytes}, _lines(pruning))


def _lines(pruning: PruneResult) -> Iterator[RenderableType]:
    rows = [(snapshot.snapshot, "keep", ", ".join(snapshot.why)) for snapshot in pruning.kept]
    rows += [
        (snapshot.snapshot, "remove", f"{'complete' if snapshot.complete else 'PARTIAL'}, {size(snapshot.bytes)}")
        for snapshot in pruning.removed
    ]
    if rows:
        yield ReadableTable(("snapshot", "", "why"), sorted(rows))
    yield from pruning.notes
    verb, snapshots = "Would remove" if pruning.dry_run else "Removed", counted(len(pruning.removed), "snapshot")
    blobs = f" and {counted(pruning.blobs_removed, 'blob')}" if pruning.blobs_removed else ""
    yield f"{verb} {snapshots}{blobs}, {size(pruning.bytes)}; {len(pruning.kept)} stay."
