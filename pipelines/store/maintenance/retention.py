"""Which snapshots are kept, and the removal of the others with the blobs that nothing needs any more.

The rule is a pure function of the manifests. Removal is under leases; a snapshot is renamed out of sight before it is deleted, so that a
process that is killed leaves only whole ones (I5); the next removal clears what lies there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
import pyarrow.parquet as pq

from pipelines.errors import ConfigurationError, StorageError, TenantBusyError
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.settings.schedule import RetentionSettings
from pipelines.store.catalogue import rebuild_catalogue
from pipelines.store.durable import digest_of, storage_errors
from pipelines.store.maintenance.drills import forget_drills
from pipelines.store.maintenance.reports import forget_reports
from pipelines.store.maintenance.verification import blob_names, forget_missing
from pipelines.store.objects.objects import ObjectInfo
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.snapshots import BLOBS, MANIFEST, DataFolder, Snapshot

_BLOB = re.compile(rf"{BLOBS}/([0-9a-f]{{2}})/(\1[0-9a-f]{{62}}|\.\1[0-9a-f]{{62}}\.[0-9.]+)")
"""A blob, or what a process that was killed left of one on its way there."""


@dataclass(frozen=True)
class Policy:
    """How many to keep: the newest ones, and one for each of the newest days, weeks and months that have any."""

    last: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0

    @classmethod
    def configured(cls, table: RetentionSettings) -> Policy:
        """What `[retention]` of bookferry.toml says."""
        return cls(table.keep_last, table.keep_daily, table.keep_weekly, table.keep_monthly)

    def check(self) -> None:
        """A policy that keeps nothing is a mistake, not a wish."""
        if not any((self.last, self.daily, self.weekly, self.monthly)):
            raise ConfigurationError(
                "Nothing says what to keep. Name at least one of --keep-last, --keep-daily, --keep-weekly and --keep-monthly, for example: "
                "bookferry snapshots prune --keep-daily 7 --keep-weekly 5 --keep-monthly 12. "
                "Or write keep_daily, keep_weekly, ... into a table [retention] of bookferry.toml."
            )

    def periods(self, zone: ZoneInfo) -> Iterator[tuple[str, int, Callable[[Snapshot], str]]]:
        """Each rule: its name, how many, and the period that a snapshot belongs to, in the zone of the library's nights."""
        yield "last", self.last, lambda one: one.manifest.snapshot
        for name, count, form in (
            ("daily", self.daily, "%Y-%m-%d"),
            ("weekly", self.weekly, "%G-W%V"),
            ("monthly", self.monthly, "%Y-%m"),
        ):
            yield name, count, lambda one, form=form: _started(one).astimezone(zone).strftime(form)  # type: ignore[misc]


def reasons_to_keep(found: Sequence[Snapshot], policy: Policy, zone: ZoneInfo) -> dict[str, list[str]]:
    """Name → why it is kept, for those of one tenant's snapshots that are.

    A complete snapshot stands for its period; a partial one only where the period has no complete one, and then it takes no complete one's
    place. What the views of library.duckdb show is kept whatever the policy says: the newest complete snapshot that holds a resource.
    """
    newest_first = sorted(found, key=lambda one: one.manifest.snapshot, reverse=True)
    good = {one.name for one in _good(found)}
    kept = _shown_now(newest_first)
    for name, count, period_of in policy.periods(zone):
        for period, one in _stand_for(newest_first, count, good, period_of):
            kept.setdefault(one.name, []).append(name if name == "last" else f"{name} {period}")
    return kept


def _shown_now(newest_first: Sequence[Snapshot]) -> dict[str, list[str]]:
    """Name → why, of the newest complete snapshot of each resource."""
    newest: dict[str, str] = {}
    for one in newest_first:
        for resource in one.manifest.resources if one.manifest.complete else ():
            newest.setdefault(resource, one.name)
    kept: dict[str, list[str]] = {}
    for resource, name in newest.items():
        kept.setdefault(name, []).append(resource)
    return {name: [f"newest complete of {', '.join(held)}"] for name, held in kept.items()}


def _good(found: Iterable[Snapshot]) -> list[Snapshot]:
    """Complete ones; where any of them holds the publications, those that do: one of users alone does not stand for the library."""
    complete = [one for one in found if one.manifest.complete]
    return [one for one in complete if one.holds_publications] or complete


def _stand_for(
    newest_first: Iterable[Snapshot], count: int, good: set[str], period_of: Callable[[Snapshot], str]
) -> Iterator[tuple[str, Snapshot]]:
    """The newest good snapshot of each of the newest `count` periods that have one; of the newest `count` periods of all, the best."""
    best: dict[str, Snapshot] = {}
    for one in newest_first:
        held = best.setdefault(period_of(one), one)
        if _rank(one, good) > _rank(held, good):
            best[period_of(one)] = one
    proved = [period for period, one in best.items() if one.name in good][:count]
    newest = [period for period, one in list(best.items())[:count] if one.name not in good]
    yield from ((period, best[period]) for period in (*proved, *newest))


def _rank(one: Snapshot, good: set[str]) -> int:
    return 2 if one.name in good else int(one.manifest.complete)


def _started(one: Snapshot) -> datetime:
    return datetime.strptime(one.manifest.snapshot, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


class Kept(msgspec.Struct):
    """One snapshot that stays, and why."""

    snapshot: str
    why: list[str]


class Removed(msgspec.Struct):
    """One snapshot that goes, and the bytes of its tables."""

    snapshot: str
    complete: bool
    bytes: int


class Pruning(msgspec.Struct, kw_only=True):
    """What a removal does, or would do."""

    dry_run: bool
    kept: list[Kept]
    removed: list[Removed]
    blobs_removed: int = 0
    blobs_bytes: int = 0
    notes: list[str] = []

    @property
    def bytes(self) -> int:
        """Bytes that become free."""
        return sum(one.bytes for one in self.removed) + self.blobs_bytes


@dataclass
class _Choice:
    """What goes and what stays of the tenants that are looked at."""

    kept: list[Kept] = field(default_factory=list)
    going: list[Snapshot] = field(default_factory=list)


def prune(
    data: DataFolder,
    tenants: Sequence[str],
    policy: Policy,
    zone: ZoneInfo,
    *,
    tenant: str | None,
    dry_run: bool,
    pass_over_busy: bool = False,
) -> Pruning:
    """Remove what the policy does not keep of `tenant`, or of all; then the blobs that no snapshot names.

    `tenants`: those of the configuration, whose backups must not run while blobs are counted. Raises `StorageError` where a manifest cannot
    be read, or a table of files that stays is damaged, before anything is removed: nobody knows what they need. A tenant that another run
    works on is passed over with a note, or raises `TenantBusyError`.
    """
    policy.check()
    with ExitStack() as leases:
        looked_at, notes = _tenants(data) if tenant is None else [tenant], []
        for one in list(looked_at) if not dry_run else ():
            try:
                leases.enter_context(data.lease(one))
            except TenantBusyError as error:
                if not pass_over_busy:
                    raise
                looked_at.remove(one)
                notes.append(f"The snapshots of {one} were left as they are until the next time. {error}")
        choice = _choose(data, looked_at, policy, zone)
        _check_files(data, {one.name for one in choice.going})
        removed = [Removed(one.name, one.manifest.complete, _bytes(one)) for one in choice.going]
        if dry_run:
            pruning = Pruning(dry_run=True, kept=choice.kept, removed=removed)
            _sweep(data, {one.name for one in choice.going}, pruning)
            return pruning
        _remove(data, looked_at, choice.going)
        pruning = Pruning(dry_run=False, kept=choice.kept, removed=removed, notes=notes)
        try:
            for one in sorted({*tenants, *_tenants(data)}.difference(looked_at)):
                leases.enter_context(data.lease(one))
        except TenantBusyError as error:
            pruning.notes.append(f"Blobs were left as they are until the next time. {error}")
        else:
            _sweep(data, set(), pruning)
        return pruning


def _check_files(data: DataFolder, going: set[str]) -> None:
    """Raises `StorageError` where a table that says which blobs stay is not as it was published: a wrong bit in it would cost a file."""
    for one in data.snapshots():
        facts = one.manifest.tables.get(PUBLICATION_FILES.name)
        if facts is None or one.name in going:
            continue
        key = f"{one.key}/{facts.path}"
        address = data.objects.address_of(key)
        with storage_errors(address), data.objects.open(key) as file:
            sha256, _ = digest_of(file)
        if sha256 != facts.sha256:
            raise StorageError(
                f"{address} was changed (`bookferry snapshots verify {one.name}` tells more), and it says which blobs are needed, so "
                "nothing was removed. Put it back from a copy, or move that snapshot's folder away."
            )


def _tenants(data: DataFolder) -> list[str]:
    return sorted({snapshot.manifest.tenant for snapshot in data.snapshots()})


def _choose(data: DataFolder, tenants: Iterable[str], policy: Policy, zone: ZoneInfo) -> _Choice:
    choice = _Choice()
    for tenant in tenants:
        found = data.snapshots(tenant)
        why = reasons_to_keep(found, policy, zone)
        choice.kept += [Kept(one.name, why[one.name]) for one in found if one.name in why]
        choice.going += [one for one in found if one.name not in why]
    return choice


def _bytes(snapshot: Snapshot) -> int:
    return sum(table.bytes for table in snapshot.manifest.tables.values())


def _remove(data: DataFolder, tenants: Iterable[str], going: Sequence[Snapshot]) -> None:
    """Out of sight first, then out of the catalogue, then off the disk; what a removal that was killed left goes, too."""
    for snapshot in going:
        data.objects.hide(snapshot.key, MANIFEST)
    if going:
        rebuild_catalogue(data)
    for tenant in tenants:
        data.objects.clear(f"snapshots/tenant={tenant}")
    forget_missing(data)
    forget_reports(data)
    forget_drills(data)


def _sweep(data: DataFolder, without: set[str], pruning: Pruning) -> None:
    """Remove, or in a dry run count, the blobs that no snapshot names; `without` are the snapshots that would be gone."""
    if next(data.objects.below(BLOBS), None) is None:
        return
    if unfinished := sorted(data.work_path.glob(f"*/*/{Capture.FACTS}")):
        pruning.notes.append(
            f"Blobs were left as they are: {unfinished[0].parent} is a backup that was begun and not finished, which may need any of them. "
            "They are looked at again once a backup of that library has ended."
        )
        return
    tables = [
        f"{one.key}/{one.manifest.tables[PUBLICATION_FILES.name].path}"
        for one in data.snapshots()
        if one.name not in without and PUBLICATION_FILES.name in one.manifest.tables
    ]
    for blob in _unused(data, [data.objects.address_of(table) for table in tables if _names_blobs(data, table)]):
        pruning.blobs_removed += 1
        pruning.blobs_bytes += blob.size
        if not pruning.dry_run:
            data.objects.delete(blob.key)


def _names_blobs(data: DataFolder, table: str) -> bool:
    with storage_errors(data.objects.address_of(table)), data.objects.open(table) as file:
        return "sha256" in pq.read_schema(file).names


def _unused(data: DataFolder, tables: list[str]) -> Iterator[ObjectInfo]:
    """The blobs that these tables do not name: two sorted lists side by side, so that neither is in memory as a whole."""
    if not tables:
        yield from _blobs(data)
        return
    with blob_names(data, tables) as names:
        used = next(names, None)
        for blob in _blobs(data):
            name = _sha256(blob)
            while used is not None and used[0] < name:
                used = next(names, None)
            if used is None or used[0] != name:
                yield blob


def _blobs(data: DataFolder) -> Iterator[ObjectInfo]:
    """Every blob, sorted by its SHA-256; what is left of others comes before those of its folder."""
    return (entry for entry in data.objects.below(BLOBS) if _BLOB.fullmatch(entry.key))


def _sha256(blob: ObjectInfo) -> str:
    return blob.key.rpartition("/")[2]
