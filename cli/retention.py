"""`bookferry snapshots prune`."""

from __future__ import annotations

from contextlib import nullcontext
from zoneinfo import ZoneInfo

import msgspec
from rich.console import Console

from cli.notify import notifying
from cli.output import Output, table_of
from pipelines.errors import ExitStatus
from pipelines.humanize import counted, size
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.retention import Policy, PruneResult, prune
from pipelines.store.stores import open_data


def prune_snapshots(
    settings: Settings, tenant: str | None, policy: Policy | None, output: Output, *, dry_run: bool
) -> ExitStatus:
    """Remove the snapshots that the policy, or else the configured one, does not keep; of one tenant or of all that have any."""
    if policy is None:
        policy = Policy.configured(settings.retention) if settings.retention is not None else Policy()
    policy.check()
    data = open_data(settings)
    if tenant is not None and not data.snapshots(tenant):
        settings.tenant(tenant)
    zone = ZoneInfo(settings.timezone)
    with nullcontext() if dry_run else notifying(settings, "retention", tenant or "", output):
        done = prune(data, list(settings.tenants), policy, zone, tenant=tenant, dry_run=dry_run)
    output.result({**msgspec.to_builtins(done), "bytes": done.bytes}, lambda console: _print(console, done))
    return ExitStatus.COMPLETE


def _print(console: Console, done: PruneResult) -> None:
    rows = [(one.snapshot, "keep", ", ".join(one.why)) for one in done.kept]
    rows += [
        (one.snapshot, "remove", f"{'complete' if one.complete else 'PARTIAL'}, {size(one.bytes)}")
        for one in done.removed
    ]
    if rows:
        console.print(table_of(("snapshot", "", "why"), sorted(rows), whole=("snapshot",)))
    for note in done.notes:
        console.print(note)
    verb = "Would remove" if done.dry_run else "Removed"
    blobs = f" and {done.blobs_removed:,} blobs" if done.blobs_removed else ""
    snapshots = counted(len(done.removed), "snapshot")
    console.print(f"{verb} {snapshots}{blobs}, {size(done.bytes)}; {len(done.kept)} stay.")
