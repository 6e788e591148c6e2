"""Published snapshots: whole or not there (I5), each with the proof of what it holds in its manifest."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from pipelines.errors import AccessDeniedError, BookferryError, ConfigurationError, StorageError, TenantBusyError
from pipelines.inventory import RESOURCES
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import STAGED
from pipelines.store.durable import sha256_of, storage_error, storage_errors, write_atomically
from pipelines.store.encryption import PersonalKeys
from pipelines.store.objects.folders import Folder
from pipelines.store.objects.objects import Objects
from pipelines.store.snapshots.captures import Capture, CaptureFacts, FileTotals, ResourceFacts, TableFacts, Unreadable
from pipelines.version import VERSION

MANIFEST = "manifest.json"
BLOBS = "files/sha256"
FORMAT = 1
"""Version of the layout below `snapshots/`; a newer one is refused, not guessed at."""


class Manifest(msgspec.Struct, kw_only=True):
    """manifest.json: written last; a folder without it is not a snapshot."""

    format: int = FORMAT
    tenant: str
    snapshot: str
    """The instant the capture began, in UTC: 20261120T020000Z."""
    base_url: str
    api: str
    complete: bool
    problems: list[str]
    notes: list[str] = []
    started_at: str
    finished_at: str
    seconds: float
    requests: int
    tool: str
    resources: dict[str, ResourceFacts]
    unreadable: dict[str, Unreadable] = {}
    """Resources that could not be read; of them the snapshot holds nothing."""
    files: FileTotals
    tables: dict[str, TableFacts]
    residue: dict[str, dict[str, int]]
    manifest_sha256: str = ""
    """SHA-256 of this file with nothing between these quotation marks."""


class Snapshot:
    """One published snapshot: where it is kept, and its manifest."""

    def __init__(self, objects: Objects, manifest: Manifest) -> None:
        self._objects = objects
        self.manifest = manifest

    @property
    def key(self) -> str:
        """The folder of objects that it is."""
        return snapshot_key(self.manifest.tenant, self.manifest.snapshot)

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return self._objects.address_of(self.key)

    @property
    def uri(self) -> str:
        """Its address as a URI: file:///... or s3://..."""
        return self.address if "://" in self.address else Path(self.address).as_uri()

    @property
    def path(self) -> Path:
        """Its folder on this machine, where the data is in one."""
        return Path(self.address)

    def address_of(self, facts: TableFacts) -> str:
        """Where one of its files is, for DuckDB and other engines."""
        return self._objects.address_of(f"{self.key}/{facts.path}")

    @property
    def name(self) -> str:
        """`tenant/snapshot`, as the commands print and take it."""
        return f"{self.manifest.tenant}/{self.manifest.snapshot}"

    @property
    def counts(self) -> dict[str, int]:
        """Resource → records."""
        return {resource: facts.records for resource, facts in self.manifest.resources.items()}

    @property
    def holds_publications(self) -> bool:
        """Whether it is of the library, not only of what belongs to it."""
        return "publications" in self.manifest.resources

    @property
    def notes(self) -> list[str]:
        """What a person should know of the proofs although they hold."""
        return self.manifest.notes


class DataFolder:
    """What bookferry.toml names as `data`, and where everything in it is (design: what is on disk).

    `path` is the folder on this machine that holds what only its runs need; `objects` are the snapshots and stored files, in the
    same folder unless they are in a bucket. `keys` read and write what is personal.
    """

    def __init__(self, path: Path, keys: PersonalKeys | None = None, objects: Objects | None = None) -> None:
        self.path = path
        self.keys = keys or PersonalKeys()
        self.objects = objects or Folder(path)
        self.work_path = path / "work"
        self.state_path = path / "state.db"
        self.catalogue_path = path / "library.duckdb"

    def prepare(self) -> None:
        """Make the folder if it is missing."""
        if any(sign in str(self.path) for sign in "?\\"):
            raise ConfigurationError(
                f"{self.path}: DuckDB cannot open files in a folder with ? or \\ in its path. Name another folder as `data`."
            )
        with storage_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def lease(self, tenant: str) -> Iterator[None]:
        """The right to read `tenant`, for one run at a time; the kernel takes it back when the process dies.

        Raises `TenantBusyError` at once when another run holds it: waiting would read the library twice in a row.
        """
        self.prepare()
        lock = FileLock(self.path / f".lease-{tenant}.lock", thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:  # is an OSError too
            raise TenantBusyError(
                f"Another run is at work on '{tenant}' at this moment (a backup or a migration), and one library never has two at once. "
                "Wait until it ends (`bookferry ui` shows it), then run this again if you still need to."
            ) from None
        except OSError as error:
            raise storage_error(error, self.path) from error
        try:
            yield
        finally:
            lock.release()

    def capture(self, tenant: str, key: str) -> Capture:
        """The capture that the run `key` has begun."""
        return Capture.open(self.work_path / f"tenant={tenant}" / key, self.keys)

    def publish(self, capture: Capture, now: datetime) -> Snapshot:
        """Turn a finished capture into a snapshot: checksums, manifest last, seen as a whole or not at all."""
        facts = capture.facts
        _check_finished(capture)
        capture.tidy()
        with storage_errors(capture.path):
            for table in facts.tables.values():
                file = capture.path / table.path
                table.sha256, table.bytes = sha256_of(file), file.stat().st_size
            manifest = _manifest(facts, now)
            write_atomically(capture.path / MANIFEST, sealed(manifest))
            files = [*(table.path for table in facts.tables.values()), MANIFEST]
            if (published := self._published(facts)) is not None:
                shutil.rmtree(capture.path)
                return published
            try:
                self.objects.publish(capture.path, snapshot_key(facts.tenant, facts.snapshot), files)
            except (OSError, BookferryError):
                capture.save()  # so that this step can be repeated
                raise
        return Snapshot(self.objects, manifest)

    def _published(self, facts: CaptureFacts) -> Snapshot | None:
        """What an earlier attempt published, the answer to which was lost."""
        key = snapshot_key(facts.tenant, facts.snapshot)
        with suppress(FileNotFoundError, NotADirectoryError):
            found = as_snapshot(self.objects, key, self.objects.read(f"{key}/{MANIFEST}"))
            if found.manifest.tables == facts.tables:
                return found
        return None

    def blob_path(self, sha256: str) -> Path:
        """The file of a blob, where the data is in a folder."""
        return self.path / blob_key(sha256)

    def tenants(self) -> list[str]:
        """Those that have snapshots, damaged ones too."""
        return [
            name.removeprefix("tenant=") for name in self.objects.folders("snapshots") if name.startswith("tenant=")
        ]

    def snapshot_keys(self, tenant: str | None = None) -> list[str]:
        """The folders that hold snapshots of one tenant or of all, whatever else is in them."""
        return [
            f"snapshots/tenant={one}/{name}"
            for one in (self.tenants() if tenant is None else [tenant])
            for name in self.objects.folders(f"snapshots/tenant={one}")
            if name.startswith("snapshot=")
        ]

    def snapshots(self, tenant: str | None = None) -> list[Snapshot]:
        """All published snapshots, of one tenant or of all, oldest first."""
        keys = self.snapshot_keys(tenant)
        manifests = self.objects.read_all(f"{key}/{MANIFEST}" for key in keys)
        found = [
            as_snapshot(self.objects, key, content)
            for key, content in zip(keys, manifests, strict=True)
            if content is not None
        ]
        return sorted(found, key=lambda snapshot: (snapshot.manifest.snapshot, snapshot.manifest.tenant))

    def find_snapshot(self, name: str) -> Snapshot:
        """The snapshot a person names: `tenant/20261120T020000Z`, the id alone, or a tenant for its newest complete one.

        One that was made of some resources by name, without the publications, is that only where there is no other.
        """
        found = self.snapshots()
        matches = [snapshot for snapshot in found if name in (snapshot.name, snapshot.manifest.snapshot)]
        if len(matches) > 1:
            raise ConfigurationError(
                f"'{name}' names snapshots of several tenants: {', '.join(one.name for one in matches)}. Name one of them."
            )
        of_tenant = [snapshot for snapshot in found if snapshot.manifest.tenant == name]
        chosen = matches[-1] if matches else newest_complete(of_tenant)
        if chosen is not None:
            return chosen
        if of_tenant:
            raise ConfigurationError(
                f"'{name}' has no complete snapshot in {self.objects.address}; the newest partial one is {of_tenant[-1].name}: "
                "name it to see it."
            )
        raise ConfigurationError(
            f"There is no snapshot '{name}' in {self.objects.address}. `bookferry snapshots list` shows what is there."
        )

    def free_snapshot_id(self, tenant: str, now: datetime) -> str:
        """The id of a capture that begins now; no snapshot has it."""
        moment = now.astimezone(UTC)
        while next(self.objects.below(snapshot_key(tenant, snapshot_id(moment))), None) is not None:
            moment += timedelta(seconds=1)
        return snapshot_id(moment)


def snapshot_key(tenant: str, snapshot: str) -> str:
    """The Hive-partitioned folder of a snapshot."""
    return f"snapshots/tenant={tenant}/snapshot={snapshot}"


def blob_key(sha256: str) -> str:
    """Where a file's bytes are kept, once under their SHA-256."""
    return f"{BLOBS}/{sha256[:2]}/{sha256}"


def newest_complete(found: Iterable[Snapshot]) -> Snapshot | None:
    """The newest complete one of a tenant's snapshots, oldest first; one without the publications only where there is no other."""
    complete = [snapshot for snapshot in found if snapshot.manifest.complete]
    chosen = [snapshot for snapshot in complete if snapshot.holds_publications] or complete
    return chosen[-1] if chosen else None


_SEAL = re.compile(rb'"manifest_sha256": "([0-9a-f]{64})"')


def sealed(manifest: Manifest) -> bytes:
    """The content of manifest.json: it carries its own checksum, so that no bit of it changes unseen."""
    unsealed = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(manifest, manifest_sha256="")))
    digest = hashlib.sha256(unsealed).hexdigest().encode()
    return unsealed.replace(b'"manifest_sha256": ""', b'"manifest_sha256": "' + digest + b'"')


def is_sealed(content: bytes) -> bool:
    """Whether the content of a manifest.json is what `sealed` made, to the last bit."""
    found = _SEAL.findall(content)
    unsealed = _SEAL.sub(b'"manifest_sha256": ""', content)
    return found == [hashlib.sha256(unsealed).hexdigest().encode()]


def snapshot_id(moment: datetime) -> str:
    """`20261120T020000Z`."""
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _check_finished(capture: Capture) -> None:
    """Only what was read and staged to the end is published, even when a person repeats single steps."""
    facts = capture.facts
    if facts.unreadable and not facts.resources:
        raise AccessDeniedError(
            f"Nothing could be read, so there is no snapshot. {' '.join(one.message for one in facts.unreadable.values())}"
        )
    wanted = [f"raw_{resource}" for resource in facts.resources]
    wanted += [table.name for resource in facts.resources for table in STAGED[resource]]
    missing = [name for name in wanted if name not in facts.tables]
    missing += ["files"] if PUBLICATION_FILES.name in facts.tables and facts.files is None else []
    if missing or not facts.resources:
        raise StorageError(
            f"{capture.path}: not published, because {', '.join(missing) or 'every table'} is still to be made. "
            "Run the whole backup again: `bookferry backup`, or the job from its raw table on."
        )


def _manifest(facts: CaptureFacts, now: datetime) -> Manifest:
    missing = {partial: _not_read(facts, partial=partial) for partial in (True, False)}
    problems = [f"{resource}: {text}" for resource, found in facts.resources.items() for text in found.problems]
    notes = [f"{resource}: {text}" for resource, found in facts.resources.items() for text in found.notes]
    problems += missing[True] + _failed_files(facts)
    notes += missing[False] + _files_not_fetched(facts)
    return Manifest(
        tenant=facts.tenant,
        snapshot=facts.snapshot,
        base_url=facts.base_url,
        api=facts.api,
        complete=not problems and all(found.complete for found in facts.resources.values()),
        problems=problems,
        notes=notes,
        started_at=facts.started_at,
        finished_at=now.isoformat(timespec="seconds"),
        seconds=round((now - datetime.fromisoformat(facts.started_at)).total_seconds(), 3),
        requests=sum(one.requests for one in facts.resources.values())
        + sum(one.requests for one in facts.unreadable.values())
        + facts.files_requests,
        tool=f"bookferry {VERSION}",
        resources={name: facts.resources[name] for name in sorted(facts.resources, key=_place)},
        unreadable=facts.unreadable,
        files=facts.files or FileTotals(),
        tables=facts.tables,
        residue=facts.residue,
    )


def _place(resource: str) -> int:
    """Where a resource stands in every list, in whatever order they were read."""
    return RESOURCES.index(resource) if resource in RESOURCES else len(RESOURCES)


_WITHOUT = "To do without it for good, name the others in `resources = [...]` of the tenant in bookferry.toml."


def _not_read(facts: CaptureFacts, *, partial: bool) -> list[str]:
    return [
        f"{resource}: could not be read, so the snapshot has none of it. {found.message} {_WITHOUT}"
        for resource, found in facts.unreadable.items()
        if found.partial == partial
    ]


def _failed_files(facts: CaptureFacts) -> list[str]:
    files = facts.files or FileTotals()
    if not files.failed:
        return []
    first = f" The first: {files.failures[0].problem}." if files.failures else ""
    count = f"files: {files.failed:,} of {files.count:,} could not be had, so the snapshot lacks their content.{first}"
    return [f"{count} `bookferry snapshots show` names them; publication_files has all, with the status failed."]


def _files_not_fetched(facts: CaptureFacts) -> list[str]:
    files = facts.files or FileTotals()
    count = f"files: the content of {files.not_fetched:,} was not fetched, as --no-files or `files = false` of the tenant says."
    return [count] if files.not_fetched else []


class _Heading(msgspec.Struct):
    """What can be read of the manifest of any version."""

    format: int
    tool: str = "unknown"


def as_snapshot(objects: Objects, key: str, content: bytes) -> Snapshot:
    """The snapshot that the content of `key`/manifest.json describes."""
    where = objects.address_of(f"{key}/{MANIFEST}")
    try:
        heading = msgspec.json.decode(content, type=_Heading)
        manifest = msgspec.json.decode(content, type=Manifest) if heading.format <= FORMAT else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(
            f"{where} is damaged ({error}). Put it back from a copy, or move that snapshot's folder away."
        ) from None
    if manifest is None:
        raise StorageError(f"{where} was written by a newer version ({heading.tool}). Update Bookferry to read it.")
    if key != snapshot_key(manifest.tenant, manifest.snapshot):
        raise StorageError(
            f"{where} belongs into a folder tenant={manifest.tenant}/snapshot={manifest.snapshot}. Give the folder back that name, or move "
            "it away from here."
        )
    return Snapshot(objects, manifest)
