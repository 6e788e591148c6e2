"""Retention: the rule for the snapshots to keep, and the removal of the others and of the blobs that nothing needs any more.

The rule is a pure function of the manifests. Removal needs a lease. A snapshot is hidden before it is deleted, so that a killed process
leaves only whole snapshots (I5); the next removal deletes the hidden ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import msgspec

from pipelines.errors import StorageError
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.catalogue import rebuild_catalogue
from pipelines.store.maintenance.reports import REPORTS
from pipelines.store.maintenance.results import DRILLS, VERIFICATIONS, remove_orphans
from pipelines.store.objects.objects import ObjectInfo, fault_of
from pipelines.store.snapshots.blobs import referenced_blobs
from pipelines.store.snapshots.capture_copies import newest_copies
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.leases import REMOVAL, removal
from pipelines.store.snapshots.manifest import SNAPSHOT_FORMAT
from pipelines.store.snapshots.snapshots import (
    BLOBS,
    DataFolder,
    Snapshot,
    busy_error,
    reading,
    standing_for_library,
)

_BLOB = re.compile(rf"{BLOBS}/([0-9a-f]{{2}})/(\1[0-9a-f]{{62}}|\.\1[0-9a-f]{{62}}\.[0-9.]+)")
"""A blob, or the leftover of a killed process that was writing one."""


def reasons_to_keep(snapshots: Sequence[Snapshot], policy: RetentionSettings, zone: ZoneInfo) -> dict[str, list[str]]:
    """Returns name → reasons, for those of one tenant's snapshots that stay.

    A complete snapshot represents its period. A partial one does so only where the period has no complete one, and never displaces one.
    The snapshots behind the views of library.duckdb always stay: the newest complete snapshot of each resource.
    """
    newest_first = sorted(snapshots, key=lambda snapshot: snapshot.manifest.snapshot, reverse=True)
    complete = (snapshot for snapshot in snapshots if snapshot.manifest.complete)
    good = {snapshot.name for snapshot in standing_for_library(complete)}
    reasons = _newest_of_each_resource(newest_first)
    for name, count, period_of in _periods(policy, zone):
        for period, snapshot in _representatives(newest_first, count, good, period_of):
            reasons.setdefault(snapshot.name, []).append(name if name == "last" else f"{name} {period}")
    return reasons


def _periods(policy: RetentionSettings, zone: ZoneInfo) -> Iterator[tuple[str, int, Callable[[Snapshot], str]]]:
    """Yields each rule: name, count, and the function from a snapshot to its period in the library's time zone."""
    yield "last", policy.keep_last, lambda snapshot: snapshot.manifest.snapshot
    for name, count, pattern in (
        ("daily", policy.keep_daily, "%Y-%m-%d"),
        ("weekly", policy.keep_weekly, "%G-W%V"),
        ("monthly", policy.keep_monthly, "%Y-%m"),
    ):
        yield name, count, lambda snapshot, pattern=pattern: _started(snapshot).astimezone(zone).strftime(pattern)  # type: ignore[misc]


def _newest_of_each_resource(newest_first: Sequence[Snapshot]) -> dict[str, list[str]]:
    """Returns name → reason, for the newest complete snapshot of each resource."""
    newest: dict[str, str] = {}
    for snapshot in newest_first:
        for resource in snapshot.manifest.resources if snapshot.manifest.complete else ():
            newest.setdefault(resource, snapshot.name)
    resources_of: dict[str, list[str]] = {}
    for resource, name in newest.items():
        resources_of.setdefault(name, []).append(resource)
    return {name: [f"newest complete of {', '.join(resources)}"] for name, resources in resources_of.items()}


def _representatives(
    newest_first: Iterable[Snapshot], count: int, good: set[str], period_of: Callable[[Snapshot], str]
) -> Iterator[tuple[str, Snapshot]]:
    """Yields period and snapshot, newest first: the best one of each of the newest `count` periods, and of as many with a good one."""
    best: dict[str, Snapshot] = {}
    for snapshot in newest_first:
        best_so_far = best.setdefault(period_of(snapshot), snapshot)
        if _rank(snapshot, good) > _rank(best_so_far, good):
            best[period_of(snapshot)] = snapshot
    with_good = (period for period, snapshot in best.items() if snapshot.name in good)
    kept = {*islice(best, count), *islice(with_good, count)}
    yield from ((period, snapshot) for period, snapshot in best.items() if period in kept)


def _rank(snapshot: Snapshot, good: set[str]) -> int:
    return 2 if snapshot.name in good else int(snapshot.manifest.complete)


def _started(snapshot: Snapshot) -> datetime:
    return datetime.strptime(snapshot.manifest.snapshot, SNAPSHOT_FORMAT).replace(tzinfo=UTC)


class KeptSnapshot(msgspec.Struct):
    """One kept snapshot, and the reasons."""

    snapshot: str
    why: list[str]


class RemovedSnapshot(msgspec.Struct):
    """One removed snapshot, and the bytes of its tables."""

    snapshot: str
    complete: bool
    bytes: int


class PruneResult(msgspec.Struct, kw_only=True):
    """The result of a removal, or of its dry run."""

    dry_run: bool
    kept: list[KeptSnapshot]
    removed: list[RemovedSnapshot]
    blobs_removed: int = 0
    blobs_bytes: int = 0
    notes: list[str] = []

    @property
    def bytes(self) -> int:
        """Bytes that are freed."""
        return sum(snapshot.bytes for snapshot in self.removed) + self.blobs_bytes


def prune(
    data: DataFolder,
    tenants: Sequence[str],
    policy: RetentionSettings,
    zone: ZoneInfo,
    *,
    tenant: str | None,
    dry_run: bool,
    before_removal: Callable[[Mapping[str, Collection[str]]], None] = lambda _: None,
) -> PruneResult:
    """Remove the snapshots of `tenant`, or of all tenants, that the policy does not keep; then the blobs that no snapshot names.

    `tenants`: those of the configuration, whose backups must not run while blobs are counted. Raises `StorageError`, before any blob is
    removed, where a remaining table of files is damaged: the needed blobs are unknown then. A snapshot with a damaged manifest stays, and
    no blob is removed while there is one. A tenant with a running job is passed over with a note; if it is `tenant` itself, that raises
    `TenantBusyError`. `before_removal` is called with the snapshots that stay (tenant → ids) before any file goes, also if all stay: a
    killed removal is continued.
    """
    with nullcontext() if dry_run else removal(data):
        selected = data.tenants() if tenant is None else [tenant]
        busy = [] if dry_run else sorted(data.leased(selected))
        if busy and tenant is not None:
            raise busy_error(tenant)
        selected = [name for name in selected if name not in busy]
        kept, superfluous = _select(data, selected, policy, zone)
        names = {snapshot.name for snapshot in superfluous}
        removed = [
            RemovedSnapshot(snapshot.name, snapshot.manifest.complete, _bytes(snapshot)) for snapshot in superfluous
        ]
        pruning = PruneResult(dry_run=dry_run, kept=kept, removed=removed)
        if busy:
            pruning.notes.append(
                f"The snapshots of {', '.join(busy)} were left as they are until the next time: other runs are at work there."
            )
        if dry_run:
            _remove_unused_blobs(data, names, pruning)
            return pruning
        data.fence(REMOVAL)  # a snapshot that another machine published meanwhile is not among those that stay
        before_removal(_ids_by_tenant(selected, kept))
        _remove(data, selected, superfluous)
        if busy := sorted(data.leased({*tenants, *data.tenants()})):
            pruning.notes.append(
                f"Blobs were left as they are until the next time: {', '.join(busy)} may need them, where other runs are at work."
            )
        else:
            _remove_unused_blobs(data, set(), pruning)
        return pruning


def _check_file_tables(data: DataFolder, snapshots: Iterable[Snapshot]) -> None:
    """Raises `StorageError` where the table of files of a snapshot differs from its publication: one wrong bit could cost a file."""
    for snapshot in snapshots:
        facts = snapshot.manifest.tables[PUBLICATION_FILES.name]
        wrong, _ = fault_of(data.objects, _file_table(snapshot), facts.bytes, facts.sha256)
        if wrong:
            raise StorageError(
                f"{wrong} (`bookferry snapshots verify {snapshot.name}` says more). It lists the needed blobs, so none was removed. Put it "
                "back from a copy, or move that snapshot's folder away."
            )


def _file_table(snapshot: Snapshot) -> str:
    return f"{snapshot.key}/{snapshot.manifest.tables[PUBLICATION_FILES.name].path}"


def _select(
    data: DataFolder, tenants: Iterable[str], policy: RetentionSettings, zone: ZoneInfo
) -> tuple[list[KeptSnapshot], list[Snapshot]]:
    """Returns the snapshots to keep and to remove."""
    kept, superfluous = list[KeptSnapshot](), list[Snapshot]()
    for tenant in tenants:
        snapshots, damaged = data.examine_snapshots(tenant)
        why = reasons_to_keep(snapshots, policy, zone)
        kept += [KeptSnapshot(snapshot.name, ["its manifest cannot be used"]) for snapshot in damaged]
        kept += [KeptSnapshot(snapshot.name, why[snapshot.name]) for snapshot in snapshots if snapshot.name in why]
        superfluous += [snapshot for snapshot in snapshots if snapshot.name not in why]
    return kept, superfluous


def _ids_by_tenant(tenants: Iterable[str], kept: Sequence[KeptSnapshot]) -> dict[str, list[str]]:
    names = [entry.snapshot.partition("/") for entry in kept]
    return {tenant: [snapshot for owner, _, snapshot in names if owner == tenant] for tenant in tenants}


def _bytes(snapshot: Snapshot) -> int:
    return sum(table.bytes for table in snapshot.manifest.tables.values())


def _remove(data: DataFolder, tenants: Iterable[str], superfluous: Sequence[Snapshot]) -> None:
    """Hide the snapshots, rebuild the catalogue, then delete them, together with the leftovers of a killed removal."""
    for snapshot in superfluous:
        data.objects.hide(snapshot.key)
    if superfluous:
        rebuild_catalogue(data)
    for tenant in tenants:
        data.objects.clear(f"snapshots/tenant={tenant}")
    for folder in (VERIFICATIONS.folder, DRILLS.folder, REPORTS):
        remove_orphans(data, folder)


def _remove_unused_blobs(data: DataFolder, without: set[str], pruning: PruneResult) -> None:
    """Remove, or in a dry run count, the blobs that no snapshot names. `without`: snapshots that count as removed.

    No run is at work. If this one loses its lease, another machine may rely on a blob. Most nights no blob goes; the tables that name the
    blobs are read whole, and compared with their publications, only where one is about to go.
    """
    if next(data.objects.below(BLOBS), None) is None:
        return
    snapshots, damaged = data.examine_snapshots()
    if damaged:
        pruning.notes.append(
            f"No blobs were removed: the manifest of {damaged[0].name} cannot be used, so the blobs that it needs are unknown. "
            f"{damaged[0].problem}"
        )
        return
    unfinished = [str(path.parent) for path in sorted(data.work_path.glob(f"*/*/{Capture.FACTS}"))]
    if data.is_shared:
        unfinished += map(data.objects.address_of, newest_copies(data).values())
    if unfinished:
        pruning.notes.append(
            f"No blobs were removed: {unfinished[0]} is an unfinished backup, which may need any of them. They are checked again "
            "after the next backup of that library."
        )
        return
    remaining = [
        snapshot
        for snapshot in snapshots
        if snapshot.name not in without and PUBLICATION_FILES.name in snapshot.manifest.tables
    ]
    with reading(*remaining):
        for blob in _unused_blobs(data, [*map(_file_table, remaining)]):
            if not pruning.blobs_removed:
                _check_file_tables(data, remaining)
            pruning.blobs_removed += 1
            pruning.blobs_bytes += blob.size
            if not pruning.dry_run:
                data.fence(REMOVAL)
                data.objects.delete(blob.key)


def _unused_blobs(data: DataFolder, tables: list[str]) -> Iterator[ObjectInfo]:
    """Yields the blobs that these tables do not name. Both lists are sorted and read in step, so that neither is in memory as a whole."""
    with referenced_blobs(data, tables) as names:
        used = next(names, None)
        for blob in _blobs(data):
            name = blob.key.rpartition("/")[2]
            while used is not None and used[0] < name:
                used = next(names, None)
            if used is None or used[0] != name:
                yield blob


def _blobs(data: DataFolder) -> Iterator[ObjectInfo]:
    """Every blob, sorted by its SHA-256. Leftovers come before the blobs of their folder."""
    return (entry for entry in data.objects.below(BLOBS) if _BLOB.fullmatch(entry.key))
