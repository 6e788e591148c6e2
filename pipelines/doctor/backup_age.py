"""How old the last good backup of a library is, for `doctor`, `status` and Dagster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipelines.doctor.findings import CheckResult, note, ok, warning
from pipelines.humanize import duration
from pipelines.store.snapshots.snapshots import DamagedSnapshot, DataFolder, Snapshot, standing_for_library

LATE = timedelta(hours=26)
"""Greatest age of a nightly backup: a day, and the duration of the backup."""


@dataclass(frozen=True)
class NewestSnapshots:
    """The newest snapshot of a tenant, the newest complete one, and those with a damaged manifest.

    Snapshots without publications count only if there are no others.
    """

    newest: Snapshot | None = None
    complete: Snapshot | None = None
    damaged: Sequence[DamagedSnapshot] = ()


def newest_snapshots(data: DataFolder, tenant: str) -> NewestSnapshots:
    """The newest snapshots of a tenant."""
    every, damaged = data.examine_snapshots(tenant)
    snapshots = standing_for_library(every)
    complete = [snapshot for snapshot in snapshots if snapshot.manifest.complete]
    return NewestSnapshots(snapshots[-1] if snapshots else None, complete[-1] if complete else None, damaged)


def last_backup(tenant: str, snapshots: NewestSnapshots, now: datetime) -> CheckResult:
    """Age of the newest complete snapshot, so that everybody knows when the last good backup ran. A damaged one is named."""
    age = _age_of_backup(tenant, snapshots.newest, snapshots.complete, now)
    if not snapshots.damaged:
        return age
    damaged = snapshots.damaged[-1]
    more = f" ({len(snapshots.damaged) - 1:,} more are like that)" if len(snapshots.damaged) > 1 else ""
    todo = f"{damaged.problem}{more} `bookferry snapshots verify {damaged.name}` checks it again. {age.todo}".rstrip()
    return warning(f"{age.message}; the snapshot {damaged.name} cannot be used", todo)


def _age_of_backup(tenant: str, newest: Snapshot | None, complete: Snapshot | None, now: datetime) -> CheckResult:
    if newest is None:
        return note("there is none yet", f"Run `bookferry backup {tenant}`.")
    if complete is None:
        return warning(
            f"none is complete; the newest partial one is {newest.name}",
            f"`bookferry snapshots show {newest.name}` names its problems.",
        )
    past = now - datetime.fromisoformat(complete.manifest.finished_at)
    if past > LATE:
        return warning(
            f"the newest complete snapshot, {complete.name}, is {duration(past.total_seconds())} old",
            f"Does the nightly job run? See `bookferry ui`, or run `bookferry backup {tenant}`.",
        )
    if newest is not complete:
        return warning(
            f"{complete.name} is complete and {duration(past.total_seconds())} old; a newer one, {newest.name}, is not complete",
            f"`bookferry snapshots show {newest.name}` names its problems.",
        )
    return ok(f"{complete.name}, complete, {duration(past.total_seconds())} old")
