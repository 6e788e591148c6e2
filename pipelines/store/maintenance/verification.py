"""Verification: proves that a snapshot is still what was published, in every file, count and blob.

A snapshot never changes, so the result is stored beside the snapshots, in `<data>/verifications/tenant=…/snapshot=….json`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow as pa

from pipelines.errors import ConfigurationError, StorageError
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import table_of
from pipelines.store.maintenance.results import VERIFICATIONS, SnapshotVerification
from pipelines.store.objects.objects import MANIFEST, Objects, fault_of
from pipelines.store.parquet import open_table
from pipelines.store.snapshots.blobs import referenced_blobs
from pipelines.store.snapshots.facts import TableFacts
from pipelines.store.snapshots.manifest import Manifest, is_unchanged
from pipelines.store.snapshots.snapshots import (
    DamagedSnapshot,
    DataFolder,
    Snapshot,
    as_snapshot,
    blob_key,
    name_of,
    newest_complete,
)

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """The part of the blobs that is read: one of `of` equal parts, each day the next one, so that `of` days read all."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Part:
        """Parses `1/7`."""
        match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ConfigurationError(
                f"--read-data {text!r}: write the part of the blobs to read, such as 1/7 for a seventh each day, or 1/1 for all."
            )
        return cls(int(match[1]), int(match[2]))

    def holds(self, sha256: str, day: date) -> bool:
        """Whether the blob is in this day's part."""
        return int(sha256[:12], 16) % self.of == (self.number - 1 + day.toordinal()) % self.of

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


ALL_BLOBS = Part()


def verify(data: DataFolder, key: str, part: Part = ALL_BLOBS, *, now: datetime) -> SnapshotVerification:
    """Read a snapshot completely. Compare it with its manifest, and the manifest's numbers with each other. Changes nothing."""
    tenant, _, snapshot = name_of(key).partition("/")
    result = SnapshotVerification(
        tenant=tenant,
        snapshot=snapshot,
        ok=True,
        verified_at=now.astimezone(UTC).isoformat(timespec="seconds"),
        read_data=str(part),
    )
    manifest = _manifest(data.objects, key, result)
    if manifest is not None:
        sound = {name for name, facts in manifest.tables.items() if _is_sound(data, key, facts, result)}
        _check_counts(manifest, result)
        if PUBLICATION_FILES.name in sound:
            _check_blobs(data, f"{key}/{manifest.tables[PUBLICATION_FILES.name].path}", part, now.date(), result)
        _check_unknown_files(data.objects, key, manifest, result)
    return result


def verify_named(
    data: DataFolder, name: str | None, part: Part = ALL_BLOBS, *, now: datetime
) -> list[SnapshotVerification]:
    """Verify the snapshots of `keys_to_verify`, and store each result."""
    results = [verify(data, key, part, now=now) for key in keys_to_verify(data, name)]
    for result in results:
        VERIFICATIONS.save(data, result)
    return results


def keys_to_verify(data: DataFolder, name: str | None) -> list[str]:
    """The keys of the snapshots to verify, damaged ones included: a named one, or the newest complete one of a tenant or of every tenant.

    With the newest ones come all snapshots with an unreadable manifest: any of them might be the newest.
    """
    snapshots, damaged = data.examine_snapshots()
    every: list[Snapshot | DamagedSnapshot] = [*snapshots, *damaged]
    if named := [snapshot.key for snapshot in every if name in (snapshot.name, snapshot.id)]:
        return named
    newest = _newest(snapshots, damaged)
    if name is not None and name not in newest:
        data.find_snapshot(name)  # raises with the names of the snapshots
    chosen = [key for tenant, keys in newest.items() if name in (None, tenant) for key in keys]
    if not chosen:
        raise ConfigurationError(
            f"There is no complete snapshot in {data.objects.address}{f' of {name}' if name else ''}, so there is nothing to verify. Run "
            "`bookferry backup TENANT` first; a partial snapshot is verified by its name."
        )
    return chosen


def tenants_without_complete(data: DataFolder) -> list[str]:
    """Tenants with snapshots, none of them complete."""
    return [tenant for tenant, keys in _newest(*data.examine_snapshots()).items() if not keys]


def tenant_of(key: str) -> str:
    """The tenant of a snapshot's key."""
    return name_of(key).partition("/")[0]


def _newest(snapshots: Sequence[Snapshot], damaged: Sequence[DamagedSnapshot]) -> dict[str, list[str]]:
    """Tenant → the keys of its damaged snapshots and of its newest complete one."""
    newest: dict[str, list[str]] = {}
    tenants = {snapshot.manifest.tenant for snapshot in snapshots} | {tenant_of(entry.key) for entry in damaged}
    for tenant in sorted(tenants):
        complete = newest_complete(snapshot for snapshot in snapshots if snapshot.manifest.tenant == tenant)
        newest[tenant] = [entry.key for entry in damaged if tenant_of(entry.key) == tenant]
        newest[tenant] += [complete.key] if complete else []
    return newest


def _manifest(objects: Objects, key: str, result: SnapshotVerification) -> Manifest | None:
    address = objects.address_of(f"{key}/{MANIFEST}")
    try:
        content = objects.read(f"{key}/{MANIFEST}")
        snapshot = as_snapshot(objects, key, content)
    except FileNotFoundError:
        result.problem(f"{address} is missing, so the other files cannot be checked.")
        return None
    except (StorageError, ConfigurationError) as error:
        result.problem(str(error))
        return None
    result.files, result.bytes = result.files + 1, result.bytes + len(content)
    if not is_unchanged(content):
        result.problem(f"{address} was changed: its content does not match its checksum.")
    return snapshot.manifest


def _is_sound(data: DataFolder, key: str, facts: TableFacts, result: SnapshotVerification) -> bool:
    """Whether a table is what the manifest says: present, with its size, its checksum and its rows."""
    key = f"{key}/{facts.path}"
    wrong, read = fault_of(data.objects, key, facts.bytes, facts.sha256)
    if read is not None:
        result.files, result.bytes = result.files + 1, result.bytes + read
    if wrong := wrong or _wrong_rows(data, key, facts, result):
        result.problem(f"{wrong}.")
    return not wrong


def _wrong_rows(data: DataFolder, table: str, facts: TableFacts, result: SnapshotVerification) -> str:
    """What is wrong with the rows of a table. Without the key of an encrypted one, a note says that they were not counted."""
    address, key = data.objects.address_of(table), data.keys.get(facts.key)
    if facts.encrypted and key is None:
        result.notes.append(
            f"{address} has the checksum of its publication. Its rows were not counted, because it is encrypted with the personal key "
            f"{facts.key}. {data.keys.why_missing}"
        )
        return ""
    try:
        with data.objects.open(table) as file, open_table(file, key) as content:
            rows = content.metadata.num_rows
    except (OSError, StorageError, pa.ArrowException) as error:
        return f"{address} cannot be read ({error})"
    return "" if rows == facts.rows else f"{address} has {rows:,} rows; the manifest says {facts.rows:,}"


def _check_counts(manifest: Manifest, result: SnapshotVerification) -> None:
    """Compare the manifest's numbers with each other (I4): listed, kept and staged records agree, and complete means proved."""
    for resource, facts in manifest.resources.items():
        where = f"{manifest.tenant}/{manifest.snapshot}: {resource}"
        raw, staged = (manifest.tables.get(name) for name in (f"raw_{resource}", table_of(resource)))
        if raw is None or staged is None:
            result.problem(f"{where}: the manifest names no {'raw' if raw is None else 'staged'} table.")
        elif not facts.records == raw.rows == staged.rows:
            result.problem(f"{where}: {facts.records:,} records listed, {raw.rows:,} kept, {staged.rows:,} staged.")
        total = facts.distinct_ids if facts.x_total is None else facts.x_total
        if facts.complete and not -facts.added <= facts.distinct_ids - total <= facts.deleted:
            result.problem(f"{where}: called complete with {facts.distinct_ids:,} ids of X-Total {total:,}.")
        if facts.complete and facts.records != facts.distinct_ids:
            result.problem(f"{where}: called complete with {facts.records:,} records of {facts.distinct_ids:,} ids.")
    if manifest.complete and (manifest.problems or not all(facts.complete for facts in manifest.resources.values())):
        result.problem(f"{manifest.tenant}/{manifest.snapshot}: called complete although its resources are not.")


def _check_unknown_files(objects: Objects, key: str, manifest: Manifest, result: SnapshotVerification) -> None:
    """Report files in the snapshot's folder that the manifest does not name."""
    named = {MANIFEST, *(facts.path for facts in manifest.tables.values())}
    for entry in objects.below(key):
        if (inside := entry.key.removeprefix(f"{key}/")) not in named:
            result.problem(f"{objects.address_of(key)}: holds {inside!r}, which the manifest does not name.")


def _check_blobs(data: DataFolder, table: str, part: Part, day: date, result: SnapshotVerification) -> None:
    """Check that every named blob exists in its size, and read those of this day's part."""
    with referenced_blobs(data, [table]) as names:
        for sha256, size in names:
            if not _SHA256.fullmatch(sha256):
                result.problem(f"{PUBLICATION_FILES.name}: {sha256[:80]!r} is not a SHA-256.")
                continue
            wrong, read = fault_of(data.objects, blob_key(sha256), size, sha256 if part.holds(sha256, day) else None)
            if read is not None:
                result.blobs_read, result.bytes = result.blobs_read + 1, result.bytes + read
            if wrong:
                result.problem(
                    f"{wrong}, and records refer to it. Put it back from a copy, or delete what is there: the next backup fetches it again "
                    "if the library still has it."
                )
            else:
                result.blobs += 1
