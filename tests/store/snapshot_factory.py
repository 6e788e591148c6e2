"""Makes snapshots by the steps of a backup, from the test's own records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.backup import files, staging
from pipelines.records.tables.registry import raw_table
from pipelines.records.values import record_ids
from pipelines.store.catalogue import rebuild_catalogue
from pipelines.store.durable import sha256_of
from pipelines.store.encryption import PersonalKey
from pipelines.store.objects.objects import MANIFEST
from pipelines.store.snapshots.captures import Capture, count_ids
from pipelines.store.snapshots.facts import CaptureFacts, ResourceFacts
from pipelines.store.snapshots.manifest import columns_before, encode_manifest
from pipelines.store.snapshots.publishing import publish
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.snapshots.unfinished import begin_capture
from pipelines.version import VERSION

STARTED_AT = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
SNAPSHOT_ID = "20261120T020000Z"
KEY, OTHER = PersonalKey(bytes(range(32))), PersonalKey(bytes(32))


def publication_payloads(count: int, *, first: int = 1) -> list[str]:
    """The JSON of `count` publications."""
    return [
        json.dumps(
            {
                "id": number,
                "title": f"Title {number}",
                "published_on": "1984-06-08",
                "abstract": f"What {number} is about",
                "isbn": "978-0-306-40615-7",
                "authors": [{"name": "Ada Lovelace", "type": "person"}],
                "categories": [{"id": 1, "name": "Computing"}],
                "cover": {"id": "c", "storage": "store", "metadata": {"size": 7, "filename": "c.png"}},
            }
        )
        for number in range(first, first + count)
    ]


def new_capture(
    data: DataFolder,
    *,
    tenant: str = "old",
    run: str = "run",
    resources: Sequence[str] = ("publications",),
    now: datetime = STARTED_AT,
) -> Capture:
    """A new capture, as the first step of a run creates it."""
    facts = CaptureFacts(
        tenant=tenant,
        snapshot=data.free_snapshot_id(tenant, now),
        base_url="https://library.example.org",
        api="v2",
        started_at=now.isoformat(timespec="seconds"),
        tool=VERSION,
        wanted=sorted(resources),
    )
    return begin_capture(data, run, facts)


def write_raw(
    capture: Capture, payloads: Sequence[str], *, complete: bool = True, resource: str = "publications"
) -> None:
    """Write the raw table and its proof, as if a listing had returned these payloads."""
    table = raw_table(resource)
    hashes = [hashlib.sha256(payload.encode()).hexdigest() for payload in payloads]
    columns = [record_ids([payload.encode() for payload in payloads]), [1] * len(payloads), list(payloads), hashes]
    with capture.raw_writer(resource) as writer:
        writer.write(pa.record_batch(columns, schema=table.schema))
    ids = count_ids(capture.raw_path(resource), capture.key_of(table.name), text_ids=resource != "publications")
    capture.add_table(table.name, capture.raw_path(resource), writer.rows)
    capture.facts.resources[resource] = ResourceFacts(
        endpoint=f"{resource}/all",
        records=ids.rows,
        distinct_ids=ids.distinct,
        without_id=ids.without_id,
        pages=1,
        x_total=ids.distinct,
        requests=1,
        seconds=0.5,
        complete=complete,
        problems=[] if complete else ["somebody deleted a record meanwhile."],
    )
    capture.save()


def finished_capture(data: DataFolder) -> Capture:
    """A capture that is ready to be published."""
    capture = new_capture(data)
    write_raw(capture, publication_payloads(3))
    staging.stage(capture, "publications")
    files.skip_files(capture)
    return capture


def publish_records(
    data: DataFolder,
    records: Mapping[str, Sequence[str]],
    *,
    tenant: str = "old",
    now: datetime = STARTED_AT,
    complete: bool = True,
) -> Snapshot:
    """Run the steps of a backup for these records (resource → payloads). Whoever opens the catalogue makes it."""
    with data.lease(tenant):
        capture = new_capture(data, tenant=tenant, resources=list(records), now=now)
        for resource, payloads in records.items():
            write_raw(capture, payloads, complete=complete, resource=resource)
            staging.stage(capture, resource, earlier=columns_before(data.manifests_before(capture.facts), resource))
        if "publications" in records:
            files.skip_files(capture)
        return publish(data, capture, now + timedelta(seconds=90))


def make_snapshot(
    data: DataFolder,
    payloads: Sequence[str] | None = None,
    *,
    tenant: str = "old",
    now: datetime = STARTED_AT,
    complete: bool = True,
    resource: str = "publications",
) -> Snapshot:
    """Make a snapshot of one resource; of three publications by default."""
    records = {resource: publication_payloads(3) if payloads is None else payloads}
    return publish_records(data, records, tenant=tenant, now=now, complete=complete)


def make_snapshot_and_catalogue(data: DataFolder, *arguments: Any, **options: Any) -> Snapshot:
    """The same, and the catalogue, as a backup leaves them."""
    snapshot = make_snapshot(data, *arguments, **options)
    rebuild_catalogue(data)
    return snapshot


def assert_intact(snapshot: Snapshot) -> None:
    """Check that every file of the manifest is there unchanged, and that there is no other file."""
    manifest = snapshot.manifest
    named = {snapshot.path / facts.path for facts in manifest.tables.values()}
    assert {path for path in snapshot.path.rglob("*") if path.is_file()} == {*named, snapshot.path / "manifest.json"}
    for facts in manifest.tables.values():
        assert sha256_of(snapshot.path / facts.path) == facts.sha256
        assert (snapshot.path / facts.path).stat().st_size == facts.bytes


def files_below(folder: Path) -> list[str]:
    """Every file below a folder, hidden ones included."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def files_with(folder: Path, *words: bytes) -> list[str]:
    """Files in any folder that contain one of the words in the clear."""
    return [
        f"{path}: {word!r}"
        for path in folder.rglob("*")
        if path.is_file()
        for word in words
        if word in path.read_bytes()
    ]


def rewrite(snapshot: Snapshot, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Publish a table of a snapshot otherwise."""
    path = snapshot.path / f"{table}.parquet"
    pq.write_table(change(pq.ParquetFile(path).read()), path)
    snapshot.manifest.tables[table].bytes = path.stat().st_size
    (snapshot.path / MANIFEST).write_bytes(encode_manifest(snapshot.manifest))
