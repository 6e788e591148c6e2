"""`bookferry snapshots prune`: removes old snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from zoneinfo import ZoneInfo

import msgspec
from rich.console import RenderableType

from cli.notify import notifying
from cli.output import Answer, ReadableTable
from pipelines.backup.iceberg import remove_from_tables
from pipelines.errors import ConfigurationError
from pipelines.humanize import counted, size
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.retention import Policy, PruneResult, prune
from pipelines.store.stores import open_data


def prune_snapshots(settings: Settings, *, tenant: str | None, dry_run: bool) -> Answer:
    """Remove the snapshots of one tenant or of all that the configured policy does not keep."""
    if settings.retention is None:
        raise ConfigurationError(
            f"{settings.path}: nothing says what to keep. Add a table [retention] with keep_last, keep_daily, keep_weekly or keep_monthly, "
            "for example: keep_daily = 7"
        )
    policy = Policy.configured(settings.retention)
    data = open_data(settings)
    if tenant is not None and not data.snapshot_keys(tenant):
        settings.tenant(tenant)
    zone = ZoneInfo(settings.timezone)
    with nullcontext() if dry_run else notifying(settings, "retention", tenant or ""):
        pruning = prune(
            data,
            list(settings.tenants),
            policy,
            zone,
            tenant=tenant,
            dry_run=dry_run,
            before_removal=partial(remove_from_tables, settings, data),
        )
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
