"""Published snapshots and the data folder that holds them. A snapshot is there as a whole or not at all (I5)."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from filelock import FileLock, Timeout

from pipelines.errors import BookferryError, ConfigurationError, StorageError, TenantBusyError
from pipelines.file_access import make_folder
from pipelines.inventory import LIST_PATHS, RESOURCES
from pipelines.settings.validation_messages import did_you_mean
from pipelines.state.local import LocalState
from pipelines.state.store import State
from pipelines.store.durable import is_refusal, storage_error, storage_errors
from pipelines.store.encryption import PersonalKeys
from pipelines.store.objects.folders import Folder
from pipelines.store.objects.objects import MANIFEST, PARALLEL_READS, Objects, fault_of, is_published
from pipelines.store.snapshots.facts import CaptureFacts, TableFacts
from pipelines.store.snapshots.manifest import SNAPSHOT_FORMAT, Manifest, decode_manifest

if TYPE_CHECKING:
    import duckdb
    import pyarrow.parquet as pq

BLOBS = "files/sha256"

LOOK_SECONDS = 0.2
"""`leased` has the lock for well under a millisecond; nobody takes that for a run."""

_log = logging.getLogger(__name__)


class Snapshot:
    """One published snapshot: its place and its manifest."""

    def __init__(self, objects: Objects, manifest: Manifest) -> None:
        self._objects = objects
        self.manifest = manifest

    @property
    def key(self) -> str:
        """The folder of its objects."""
        return snapshot_key(self.manifest.tenant, self.manifest.snapshot)

    @property
    def address(self) -> str:
        """Its address, for people."""
        return self._objects.address_of(self.key)

    @property
    def uri(self) -> str:
        """Its address as a URI: file:///... or s3://..."""
        return self.address if "://" in self.address else Path(self.address).as_uri()

    @property
    def path(self) -> Path:
        """Its local folder, where the data is in a folder."""
        return Path(self.address)

    def address_of(self, facts: TableFacts) -> str:
        """The address of one of its files, for DuckDB and other engines."""
        return self._objects.address_of(f"{self.key}/{facts.path}")

    def sound_address_of(self, facts: TableFacts) -> str:
        """The same, to be read now. Raises `StorageError` where its size is not as published: a sound file of another table is damage."""
        size = self._objects.size(f"{self.key}/{facts.path}")
        if size not in (None, facts.bytes):
            raise StorageError(self.damage_of_size(facts, size))
        return self.address_of(facts)

    def damage_of_size(self, facts: TableFacts, size: int | None) -> str:
        """What to say of a file of another size than was published."""
        return self._damage(f"{self.address_of(facts)} has {size:,} bytes instead of {facts.bytes:,}")

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yields the address of each file that is not as published, and what is wrong; nothing if the snapshot was removed meanwhile."""
        if not is_published(self._objects, self.key):
            return
        for facts in self.manifest.tables.values():
            wrong, _ = fault_of(self._objects, f"{self.key}/{facts.path}", facts.bytes, facts.sha256)
            if wrong:
                yield self.address_of(facts), self._damage(wrong)

    def _damage(self, wrong: str) -> str:
        return (
            f"{wrong}. `bookferry snapshots verify {self.name}` says what else is damaged there. Put it back from a copy of the data "
            "folder; other snapshots are not affected."
        )

    @property
    def name(self) -> str:
        """`tenant/snapshot`, as the commands print and take it."""
        return f"{self.manifest.tenant}/{self.manifest.snapshot}"

    @property
    def id(self) -> str:
        """The id, such as `20261120T020000Z`."""
        return self.manifest.snapshot

    @property
    def counts(self) -> dict[str, int]:
        """Resource → records."""
        return {resource: facts.records for resource, facts in self.manifest.resources.items()}

    @property
    def not_read(self) -> list[str]:
        """What the library has, or may have, and this snapshot has not: resources, then addresses of lists."""
        manifest = self.manifest
        addresses = {f"/{path}" for path in LIST_PATHS.values()}
        return [
            *(resource for resource in RESOURCES if resource not in manifest.resources),
            *(entry for entry in manifest.not_read if entry not in addresses),
        ]

    @property
    def holds_publications(self) -> bool:
        """Whether it has the publications, rather than other resources alone."""
        return "publications" in self.manifest.resources


@contextmanager
def reading(*snapshots: Snapshot) -> Iterator[None]:
    """For whoever reads files of these snapshots: where one of them is not as published, an error becomes a `StorageError` about that.

    What is damage is decided by their manifests, not by the words of an error.
    """
    try:
        yield
    except Exception as error:
        cause = (isinstance(error, StorageError) and error.__cause__) or error
        if not isinstance(cause, BookferryError) and not is_refusal(cause):
            for snapshot in snapshots:
                for _, wrong in snapshot.faults():
                    raise StorageError(wrong) from error
        raise


class DamagedSnapshot(NamedTuple):
    """A snapshot whose manifest cannot be used. The others are not affected; what it needs is unknown, so that nothing of it is removed."""

    key: str
    problem: BookferryError

    @property
    def name(self) -> str:
        """`tenant/snapshot`, by the names of its folders."""
        return name_of(self.key)

    @property
    def id(self) -> str:
        """The id of the snapshot."""
        return self.name.partition("/")[2]


class DataFolder:
    """The data folder that bookferry.toml names as `data`, and the places in it.

    `path` is the local folder for everything that only runs need. `objects` are the snapshots and stored files: in the same folder, or in a
    bucket. `keys` encrypt and decrypt personal data. `state` is what runs share: in a file of the folder unless another one is given.
    """

    def __init__(
        self,
        path: Path,
        keys: PersonalKeys | None = None,
        objects: Objects | None = None,
        state: State | None = None,
    ) -> None:
        self.path = path
        self.keys = keys or PersonalKeys()
        self.objects = objects or Folder(path)
        self.work_path = path / "work"
        self.state = state or LocalState(path / "state.db")
        self.catalogue_path = path / "library.duckdb"

    def prepare(self) -> None:
        """Create the folder if it is missing."""
        with storage_errors(self.path):
            make_folder(self.path)

    @contextmanager
    def duckdb(self, memory: str, threads: int, spilled: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A DuckDB that reads addresses of this data within `memory`, such as 128MB, however large the library.

        It spills into the folder `spilled`, or into one of its own in the data folder, which has space. Rows have no order of their own.
        """
        from pipelines.store.parquet import bounded_duckdb  # noqa: PLC0415  `status` reads manifests without Arrow

        own = self.path / f".spilled-{uuid4().hex}"
        try:
            with storage_errors(self.path), bounded_duckdb(memory, threads, spilled or own) as database:
                database.execute("SET preserve_insertion_order = false")
                self.objects.attach(database)
                yield database
        finally:
            shutil.rmtree(own, ignore_errors=True)

    @contextmanager
    def lease(self, tenant: str) -> Iterator[None]:
        """The exclusive right to read `tenant` for the length of the block, on this machine and among all who share the state.

        The kernel releases it when the process dies, and others end it when that falls silent. Raises `TenantBusyError` where another run
        holds it: waiting would read the library twice in a row.
        """
        self.prepare()
        with self._lock(tenant, LOOK_SECONDS), self.state.lease(tenant, self.objects.address):
            yield

    @contextmanager
    def _lock(self, tenant: str, seconds: float) -> Iterator[None]:
        lock = FileLock(self.path / f".lease-{tenant}.lock", thread_local=False)
        try:
            lock.acquire(timeout=seconds, poll_interval=LOOK_SECONDS / 10)
        except Timeout:  # is an OSError too
            raise busy_error(tenant) from None
        except OSError as error:
            raise storage_error(error, self.path) from error
        try:
            yield
        finally:
            lock.release()

    @property
    def is_shared(self) -> bool:
        """Whether several machines work on the data: it is in a bucket, and the state in a database."""
        return not self.state.is_own and not isinstance(self.objects, Folder)

    def fence(self, tenant: str) -> int:
        """The number of this run's lease of a tenant. Raises `StorageError` where it has lost that."""
        return self.state.fence(tenant, self.objects.address)

    def leased(self, tenants: Collection[str]) -> set[str]:
        """Those tenants whose leases runs have. Raises `BookferryError` where that cannot be known."""
        self.prepare()
        return {name for name in tenants if self._is_locked(name)} | self.state.leased(tenants, self.objects.address)

    def _is_locked(self, tenant: str) -> bool:
        try:
            with self._lock(tenant, 0):
                return False
        except TenantBusyError:
            return True

    @contextmanager
    def open_table(self, snapshot: Snapshot, name: str) -> Iterator[pq.ParquetFile]:
        """Opens the file of one table of a snapshot, to be read in parts."""
        from pipelines.store.parquet import open_table  # noqa: PLC0415  `status` reads manifests without Arrow

        facts = snapshot.manifest.tables[name]
        key = self.keys.to_read(facts.key, f"The table {name} of {snapshot.name}")
        with (
            storage_errors(snapshot.sound_address_of(facts)),
            reading(snapshot),
            self.objects.open(f"{snapshot.key}/{facts.path}") as content,
            open_table(content, key) as file,
        ):
            yield file

    def manifests_before(self, facts: CaptureFacts) -> list[Manifest]:
        """The manifests of the earlier snapshots of the same library, oldest first."""
        library = facts.base_url, facts.api
        manifests = (snapshot.manifest for snapshot in self.snapshots(facts.tenant))
        return [
            manifest
            for manifest in manifests
            if manifest.snapshot < facts.snapshot and (manifest.base_url, manifest.api) == library
        ]

    def tenants(self) -> list[str]:
        """The tenants with snapshots, damaged ones included."""
        return [
            name.removeprefix("tenant=") for name in self.objects.folders("snapshots") if name.startswith("tenant=")
        ]

    def snapshot_keys(self, tenant: str | None = None) -> list[str]:
        """The folders of the snapshots of one tenant or of all, whatever they contain."""
        return [
            f"snapshots/tenant={owner}/{name}"
            for owner in (self.tenants() if tenant is None else [tenant])
            for name in self.objects.folders(f"snapshots/tenant={owner}")
            if name.startswith("snapshot=")
        ]

    def examine_snapshots(self, tenant: str | None = None) -> tuple[list[Snapshot], list[DamagedSnapshot]]:
        """The published snapshots of one tenant or of all, oldest first, and those whose manifest is lost or cannot be used."""
        examined = _read_snapshots(self.objects, self.snapshot_keys(tenant))
        snapshots = [snapshot for snapshot in examined if isinstance(snapshot, Snapshot)]
        damaged = [snapshot for snapshot in examined if isinstance(snapshot, DamagedSnapshot)]
        return sorted(snapshots, key=lambda snapshot: (snapshot.manifest.snapshot, snapshot.manifest.tenant)), damaged

    def snapshots(self, tenant: str | None = None, name: str | None = None) -> list[Snapshot]:
        """The published snapshots of one tenant or of all, oldest first, where the one that is asked for by `name` is not damaged.

        Other damaged ones are left out, and the log names them.
        """
        snapshots, damaged = self.examine_snapshots(tenant)
        for snapshot in damaged:
            if name in (snapshot.name, snapshot.id):
                raise snapshot.problem
            _log.warning("The snapshot %s is left out: %s", snapshot.name, snapshot.problem)
        return snapshots

    def complete_snapshots(self, tenant: str, name: str | None = None) -> list[Snapshot]:
        """The complete snapshots of one tenant, oldest first, or only the one with this name. Another name is a `ConfigurationError`."""
        complete = [snapshot for snapshot in self.snapshots(tenant, name) if snapshot.manifest.complete]
        matches = [snapshot for snapshot in complete if name in (None, snapshot.name, snapshot.id)]
        if name is not None and not matches:
            names = ", ".join(snapshot.id for snapshot in complete) or "none"
            raise ConfigurationError(
                f"'{name}' is no complete snapshot of '{tenant}', and only complete ones are staged. Complete ones: {names}."
            )
        return matches

    def find_snapshot(self, name: str) -> Snapshot:
        """The snapshot of a name: `tenant/20261120T020000Z`, the id alone, or a tenant for its newest complete snapshot.

        A snapshot without the publications stands for its tenant only where there is no other.
        """
        snapshots = self.snapshots(None, name)
        matches = [snapshot for snapshot in snapshots if name in (snapshot.name, snapshot.id)]
        if len(matches) > 1:
            raise ConfigurationError(
                f"'{name}' names snapshots of several tenants: {', '.join(match.name for match in matches)}. Name one of them."
            )
        of_tenant = [snapshot for snapshot in snapshots if snapshot.manifest.tenant == name]
        chosen = matches[-1] if matches else newest_complete(of_tenant)
        if chosen is not None:
            return chosen
        if of_tenant:
            raise ConfigurationError(
                f"'{name}' has no complete snapshot in {self.objects.address}; the newest partial one is {of_tenant[-1].name}: "
                "name it to see it."
            )
        names = {name for snapshot in snapshots for name in (snapshot.name, snapshot.manifest.tenant)}
        raise ConfigurationError(
            f"There is no snapshot '{name}' in {self.objects.address}{did_you_mean(name, names)}. `bookferry snapshots list` shows what "
            "is there; `bookferry backup TENANT` makes one."
        )

    def free_snapshot_id(self, tenant: str, now: datetime) -> str:
        """An unused snapshot id for a capture that begins now."""
        moment = now.astimezone(UTC)
        while next(self.objects.below(snapshot_key(tenant, snapshot_id(moment))), None) is not None:
            moment += timedelta(seconds=1)
        return snapshot_id(moment)


def busy_error(tenant: str) -> TenantBusyError:
    """Says that another run has the lease of a tenant."""
    return TenantBusyError(
        f"Another run is at work on '{tenant}' at this moment (a backup or a migration), and one library has one run at a time. "
        "Wait until it ends, then run this again if you still need to."
    )


def snapshot_key(tenant: str, snapshot: str) -> str:
    """The Hive-partitioned folder of a snapshot."""
    return f"snapshots/tenant={tenant}/snapshot={snapshot}"


def name_of(key: str) -> str:
    """The name `tenant/snapshot` of a snapshot's folder."""
    _, tenant, snapshot = key.split("/")
    return f"{tenant.removeprefix('tenant=')}/{snapshot.removeprefix('snapshot=')}"


def blob_key(sha256: str) -> str:
    """The key of a blob: its SHA-256 below the folder of blobs."""
    return f"{BLOBS}/{sha256[:2]}/{sha256}"


def newest_complete(snapshots: Iterable[Snapshot]) -> Snapshot | None:
    """The newest complete one of a tenant's snapshots, given oldest first. One without the publications counts if there is no other."""
    chosen = standing_for_library(snapshot for snapshot in snapshots if snapshot.manifest.complete)
    return chosen[-1] if chosen else None


def standing_for_library(snapshots: Iterable[Snapshot]) -> list[Snapshot]:
    """Those with the publications; where none has them, all: users alone do not stand for the library."""
    candidates = list(snapshots)
    return [snapshot for snapshot in candidates if snapshot.holds_publications] or candidates


def snapshot_id(moment: datetime) -> str:
    """The snapshot id of an instant, such as `20261120T020000Z`."""
    return moment.astimezone(UTC).strftime(SNAPSHOT_FORMAT)


def _read_snapshots(objects: Objects, keys: Sequence[str]) -> list[Snapshot | DamagedSnapshot]:
    """The snapshots in these folders, without those that are being published or removed. A store that cannot be reached is no damage."""

    def read(key: str, *, is_again: bool = False) -> Snapshot | DamagedSnapshot | None:
        address = f"{key}/{MANIFEST}"
        try:
            return as_snapshot(objects, key, objects.read(address))
        except FileNotFoundError:
            if key in objects.unfinished("snapshots") or next(objects.below(key), None) is None:
                return None
            if not is_again:  # published meanwhile, perhaps
                return read(key, is_again=True)
            lost = f"{objects.address_of(address)} is missing. Put it back from a copy, or move that snapshot's folder away."
            return DamagedSnapshot(key, StorageError(lost))
        except (StorageError, ConfigurationError) as error:
            return DamagedSnapshot(key, error)

    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        return [snapshot for snapshot in pool.map(read, keys) if snapshot is not None]


def as_snapshot(objects: Objects, key: str, content: bytes) -> Snapshot:
    """Decodes `key`/manifest.json. Raises `StorageError` where it is damaged, too new, or in the wrong folder."""
    where = objects.address_of(f"{key}/{MANIFEST}")
    manifest = decode_manifest(content, where)
    if key != snapshot_key(manifest.tenant, manifest.snapshot):
        raise StorageError(
            f"{where} belongs in a folder tenant={manifest.tenant}/snapshot={manifest.snapshot}. Rename the folder to that, or move it "
            "away from here."
        )
    return Snapshot(objects, manifest)
