"""Proving that a snapshot still is what was published: every file, every count, every blob; and keeping the date of the proof.

A snapshot never changes, so the result is kept beside all snapshots, in `<data>/verifications/tenant=…/snapshot=….json`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from io import BufferedReader
from pathlib import PurePosixPath

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import ConfigurationError, StorageError
from pipelines.humanize import MOST_LISTED
from pipelines.records.tables import PUBLICATION_FILES, STAGED
from pipelines.store.durable import digest_of, storage_errors
from pipelines.store.encryption import PersonalKeys
from pipelines.store.objects.objects import Objects
from pipelines.store.parquet import exactly, open_table
from pipelines.store.snapshots.captures import TableFacts
from pipelines.store.snapshots.snapshots import (
    MANIFEST,
    DataFolder,
    Manifest,
    as_snapshot,
    blob_key,
    is_sealed,
    newest_complete,
    snapshot_key,
)

VERIFICATIONS = "verifications"

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """Which blobs are read: one of `of` equal parts, another one every day, so that `of` days read them all."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Part:
        """From `1/7`."""
        found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigurationError(
                f"--read-data {text!r}: write which part of the blobs is to be read, such as 1/7 for a seventh each day, or 1/1 for all."
            )
        return cls(int(found[1]), int(found[2]))

    def holds(self, sha256: str, day: date) -> bool:
        """Whether the blob is in the part of this day."""
        return int(sha256[:12], 16) % self.of == (self.number - 1 + day.toordinal()) % self.of

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


WHOLE = Part()


class SnapshotVerification(msgspec.Struct, kw_only=True):
    """What one look at a snapshot found."""

    tenant: str
    snapshot: str
    ok: bool
    problems: list[str]
    problems_count: int
    notes: list[str] = []
    """What could not be looked at, although nothing is known to be wrong with it."""
    verified_at: str
    files: int
    """Files of the snapshot that were read to the end."""
    bytes: int
    """Bytes read."""
    blobs: int
    """Blobs that its records name and that are there in their size."""
    blobs_read: int
    read_data: str

    @property
    def name(self) -> str:
        """`tenant/snapshot`."""
        return f"{self.tenant}/{self.snapshot}"


@dataclass
class _Look:
    """What has been seen so far."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    count: int = 0
    files: int = 0
    bytes: int = 0
    blobs: int = 0
    blobs_read: int = 0

    def problem(self, text: str) -> None:
        self.count += 1
        if len(self.problems) < MOST_LISTED:
            self.problems.append(text)


def keys_to_verify(data: DataFolder, name: str | None) -> list[str]:
    """The snapshots that a person means, damaged ones too: one by its name, a tenant's newest complete one, or that of every tenant.

    Where somebody asks for the newest, snapshots whose manifest cannot be read come along: nobody knows what they would have been.
    """
    keys = _keys(data)
    named = [key for key in keys if name in (_name(key), _name(key).partition("/")[2])]
    if named:
        return named
    tenants = _tenants(keys)
    if name is not None and name not in tenants:
        data.find_snapshot(name)  # says what there is
    chosen = [key for tenant in tenants if name in (None, tenant) for key in _newest(data, keys, tenant)]
    if not chosen:
        raise ConfigurationError(
            f"There is no complete snapshot in {data.objects.address}{f' of {name}' if name else ''}, so there is nothing to verify. Run "
            "`bookferry backup TENANT` first; a partial one is verified by its name."
        )
    return chosen


def tenants_without_complete(data: DataFolder) -> list[str]:
    """Tenants that have snapshots, none of them complete."""
    keys = _keys(data)
    return [tenant for tenant in _tenants(keys) if not _newest(data, keys, tenant)]


def verify(data: DataFolder, key: str, part: Part = WHOLE, *, now: datetime) -> SnapshotVerification:
    """Read a snapshot to the last byte, hold it against its manifest and the manifest against itself. Changes nothing."""
    look = _Look()
    manifest = _manifest(data.objects, key, look)
    if manifest is not None:
        sound = {name for name, facts in manifest.tables.items() if _is_sound(data, key, facts, look)}
        _check_counts(manifest, look)
        if PUBLICATION_FILES.name in sound:
            _check_blobs(data, f"{key}/{manifest.tables[PUBLICATION_FILES.name].path}", part, now.date(), look)
        _check_strangers(data.objects, key, manifest, look)
    tenant, _, snapshot = _name(key).partition("/")
    return SnapshotVerification(
        tenant=tenant,
        snapshot=snapshot,
        ok=not look.count,
        problems=look.problems,
        problems_count=look.count,
        notes=look.notes,
        verified_at=now.astimezone(UTC).isoformat(timespec="seconds"),
        files=look.files,
        bytes=look.bytes,
        blobs=look.blobs,
        blobs_read=look.blobs_read,
        read_data=str(part),
    )


def verify_named(
    data: DataFolder, name: str | None, part: Part = WHOLE, *, now: datetime
) -> list[SnapshotVerification]:
    """Verify what `keys_to_verify` finds, and keep each result."""
    results = [verify(data, key, part, now=now) for key in keys_to_verify(data, name)]
    for result in results:
        keep(data, result)
    return results


def keep(data: DataFolder, result: SnapshotVerification) -> None:
    """Keep the date and the result, unless the snapshot was pruned meanwhile."""
    if next(data.objects.below(snapshot_key(result.tenant, result.snapshot)), None) is not None:
        content = msgspec.json.format(msgspec.json.encode(result))
        data.objects.replace(_kept_key(result.tenant, result.snapshot), content)


def last_verification(data: DataFolder, tenant: str, snapshot: str) -> SnapshotVerification | None:
    """The last result that was kept; none where there is none that can be read, so that it is proved anew."""
    with suppress(FileNotFoundError, StorageError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(data.objects.read(_kept_key(tenant, snapshot)), type=SnapshotVerification)
    return None


def forget_missing(data: DataFolder) -> None:
    """Remove what is kept of snapshots that are gone."""
    there = {_kept_key(*_name(key).split("/")) for key in data.snapshot_keys()}
    for entry in list(data.objects.below(VERIFICATIONS)):
        if entry.key not in there:
            data.objects.delete(entry.key)


def _kept_key(tenant: str, snapshot: str) -> str:
    return f"{VERIFICATIONS}/tenant={tenant}/snapshot={snapshot}.json"


def _keys(data: DataFolder) -> list[str]:
    """Everything that is or was a snapshot, but not what is half published or half removed."""
    unfinished = data.objects.unfinished("snapshots")
    return [key for key in data.snapshot_keys() if key not in unfinished]


def tenant_of(key: str) -> str:
    """Whose snapshot a folder is, by its name."""
    return _name(key).partition("/")[0]


def _tenants(keys: Iterable[str]) -> list[str]:
    return sorted({tenant_of(key) for key in keys})


def _name(key: str) -> str:
    """`tenant/snapshot`, by the names of the folders."""
    _, tenant, snapshot = key.split("/")
    return f"{tenant.removeprefix('tenant=')}/{snapshot.removeprefix('snapshot=')}"


def _newest(data: DataFolder, keys: Iterable[str], tenant: str) -> list[str]:
    """The newest complete snapshot of a tenant, and those that cannot be read."""
    readable, damaged = [], []
    of_tenant = [key for key in keys if tenant_of(key) == tenant]
    manifests = data.objects.read_all(f"{key}/{MANIFEST}" for key in of_tenant)
    for key, content in zip(of_tenant, manifests, strict=True):
        try:
            if content is None:
                damaged.append(key)
            else:
                readable.append(as_snapshot(data.objects, key, content))
        except StorageError:
            damaged.append(key)
    newest = newest_complete(readable)
    return [*damaged, *([newest.key] if newest else [])]


def _manifest(objects: Objects, key: str, look: _Look) -> Manifest | None:
    address = objects.address_of(f"{key}/{MANIFEST}")
    try:
        content = objects.read(f"{key}/{MANIFEST}")
        snapshot = as_snapshot(objects, key, content)
    except FileNotFoundError:
        look.problem(f"{address} is missing: nothing says what the other files are.")
        return None
    except StorageError as error:
        look.problem(str(error))
        return None
    look.files, look.bytes = look.files + 1, look.bytes + len(content)
    if not is_sealed(content):
        look.problem(f"{address} was changed: it does not have the checksum that it carries.")
    return snapshot.manifest


def _is_sound(data: DataFolder, key: str, facts: TableFacts, look: _Look) -> bool:
    """Whether one table is what the manifest says: there, in its size, with its checksum and its rows."""
    objects = data.objects
    if PurePosixPath(facts.path).is_absolute() or ".." in PurePosixPath(facts.path).parts:
        look.problem(
            f"{objects.address_of(key)}/{MANIFEST} names {facts.path!r}, which is not in the snapshot's folder."
        )
        return False
    before = look.count
    try:
        address = objects.address_of(f"{key}/{facts.path}")
        with objects.open(f"{key}/{facts.path}") as file:
            sha256, size = digest_of(file)
            look.files, look.bytes = look.files + 1, look.bytes + size
            if size != facts.bytes:
                look.problem(f"{address} has {size:,} bytes; the manifest says {facts.bytes:,}.")
            elif sha256 != facts.sha256:
                look.problem(f"{address} was changed: its SHA-256 is {sha256}, the manifest says {facts.sha256}.")
            else:
                _check_rows(file, address, facts, data.keys, look)
    except FileNotFoundError:
        look.problem(f"{address} is missing.")
    except (OSError, StorageError, pa.ArrowException) as error:
        look.problem(f"{objects.address_of(key)}/{facts.path} cannot be read ({error}).")
    return look.count == before


def _check_rows(file: BufferedReader, address: str, facts: TableFacts, keys: PersonalKeys, look: _Look) -> None:
    """As many as the manifest says. Who has no key for what is encrypted is told that they were not counted."""
    key = keys.get(facts.key)
    if facts.encrypted and key is None:
        look.notes.append(
            f"{address} has the checksum of what was published. Its rows were not counted: it is encrypted with the personal key "
            f"{facts.key}. {keys.why_not}"
        )
        return
    with open_table(file, key) as table:
        if (rows := table.metadata.num_rows) != facts.rows:
            look.problem(f"{address} has {rows:,} rows; the manifest says {facts.rows:,}.")


def _check_counts(manifest: Manifest, look: _Look) -> None:
    """The manifest against itself (I4): what was listed is what was kept, what was kept was staged, and complete means proved."""
    for resource, facts in manifest.resources.items():
        where = f"{manifest.tenant}/{manifest.snapshot}: {resource}"
        raw, staged = (manifest.tables.get(name) for name in (f"raw_{resource}", _table_of_records(resource)))
        if raw is None or staged is None:
            look.problem(f"{where}: the manifest names no {'raw' if raw is None else 'staged'} table.")
        elif not facts.records == raw.rows == staged.rows:
            look.problem(f"{where}: {facts.records:,} records listed, {raw.rows:,} kept, {staged.rows:,} staged.")
        total = facts.distinct_ids if facts.x_total is None else facts.x_total
        if facts.complete and not -facts.added <= facts.distinct_ids - total <= facts.deleted:
            look.problem(f"{where}: called complete with {facts.distinct_ids:,} ids of X-Total {total:,}.")
        if facts.complete and facts.records != facts.distinct_ids:
            look.problem(f"{where}: called complete with {facts.records:,} records of {facts.distinct_ids:,} ids.")
    if manifest.complete and (manifest.problems or not all(one.complete for one in manifest.resources.values())):
        look.problem(f"{manifest.tenant}/{manifest.snapshot}: called complete although its resources are not.")


def _table_of_records(resource: str) -> str:
    """The staged table that has a row for each record."""
    return STAGED[resource][0].name if resource in STAGED else f"raw_{resource}"


def _check_strangers(objects: Objects, key: str, manifest: Manifest, look: _Look) -> None:
    """Nothing is in the folder that the manifest does not name."""
    named = {MANIFEST, *(facts.path for facts in manifest.tables.values())}
    for entry in objects.below(key):
        if (inside := entry.key.removeprefix(f"{key}/")) not in named:
            look.problem(f"{objects.address_of(key)}: holds {inside!r}, which the manifest does not name.")


def _check_blobs(data: DataFolder, table: str, part: Part, day: date, look: _Look) -> None:
    """Every blob that the records name is there in its size; those of this day's part are read."""
    with data.objects.open(table) as file:
        if "sha256" not in pq.read_schema(file).names:
            return
    with blob_names(data, [data.objects.address_of(table)]) as names:
        for sha256, size in names:
            _check_blob(
                data.objects, sha256, size, look, read=bool(_SHA256.fullmatch(sha256)) and part.holds(sha256, day)
            )


def _check_blob(objects: Objects, sha256: str, size: int | None, look: _Look, *, read: bool) -> None:
    if not _SHA256.fullmatch(sha256):
        look.problem(f"{PUBLICATION_FILES.name}: {sha256[:80]!r} is not a SHA-256.")
        return
    key = blob_key(sha256)
    address = objects.address_of(key)
    try:
        found = objects.size(key)
        if found is None:
            look.problem(f"{address} is missing, and records name it.")
            return
        look.blobs += 1
        if size is not None and found != size:
            look.problem(f"{address} has {found:,} bytes; the records say {size:,}. {_ANEW}")
        elif read:
            look.blobs_read, look.bytes = look.blobs_read + 1, look.bytes + found
            with objects.open(key) as file:
                actual, _ = digest_of(file)
            if actual != sha256:
                look.problem(f"{address} was changed: its SHA-256 is {actual}. {_ANEW}")
    except (OSError, StorageError) as error:
        look.problem(f"{address} cannot be read ({error}).")


_ANEW = "Put it back from a copy, or delete it: the next backup fetches it again where the library still has it."


@contextmanager
def blob_names(data: DataFolder, tables: list[str]) -> Iterator[Iterator[tuple[str, int | None]]]:
    """The SHA-256 and bytes of every blob that some `publication_files` tables name, each once, sorted.

    DuckDB sorts, and spills to disk rather than take more memory.
    """
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "256MB",
        "threads": 1,
        "temp_directory": str(data.path / f".spilled-{os.getpid()}"),
    }
    sql = "SELECT sha256, any_value(bytes) FROM files WHERE sha256 IS NOT NULL GROUP BY sha256 ORDER BY sha256"
    with storage_errors(data.path), duckdb.connect(config=limits) as database:
        data.objects.attach(database)
        database.read_parquet([exactly(path) for path in tables], union_by_name=True).create_view("files")
        answer = database.execute(sql)
        yield (row for rows in iter(lambda: answer.fetchmany(1000), []) for row in rows)
