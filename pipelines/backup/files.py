"""The files step of a backup: the content of every file that the records name becomes a blob, and the table says what became of each.

While publications are read, `fetching` works on what their pages bring. `fetch_files` does the rest after it: what failed in a way that may
pass, what came without an address, what the list does not know. Both are repeatable: what is kept is not fetched again (I9).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.backup.fetching import Fetching
from pipelines.errors import StorageError
from pipelines.records.files import ASSET, COVER, FAILED, KEPT, FileReference
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock
from pipelines.service.redaction import outside_text
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import row_batches, table_writer
from pipelines.store.snapshots.blobs import Blobs
from pipelines.store.snapshots.captures import Capture, FailedFile, FileTotals
from pipelines.store.snapshots.file_list import FileList, Known, State
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

EARLIER = 5
"""Snapshots at most that are asked for contents that are kept already."""

SHOWN = 100
"""Files that could not be had which the manifest names; the table has all of them."""

ROWS = 10_000
"""Rows of a table that are looked at together."""

NOT_TRIED = "not tried"
_NAME = PUBLICATION_FILES.name


@dataclass(frozen=True)
class FileProgress:
    """How far the fetching of files is after the listing; in the form of a listing's progress."""

    records: int
    expected: int
    requests: int
    resource: str = "files"
    done: str = "read"
    afterwards: str = "making the tables"
    seconds_left: float = 0.0
    """By the budget, which has no part in it: what counts is the rate so far."""


OpenClient = Callable[[], AbstractContextManager[LibraryClient]]


@contextmanager
def beside_listing(
    capture: Capture, data: DataFolder, open_client: OpenClient, clock: Clock | None = None
) -> Iterator[Callable[[Sequence[msgspec.Raw]], None]]:
    """Fetch files while their records are read: what is yielded takes the records of each page. Use it under the tenant's lease."""
    work = _fetching(capture, data, open_client, clock)
    with work:
        yield work.on_page
    _charge(capture, work)


def fetch_files(
    capture: Capture,
    data: DataFolder,
    open_client: OpenClient,
    on_progress: Callable[[FileProgress], None] = lambda _: None,
    clock: Clock | None = None,
) -> FileTotals:
    """Have what the listing left, and write into `publication_files` what became of every file."""
    if not capture.facts.tables[_NAME].rows:
        return _note(capture, FileTotals())
    work = _fetching(capture, data, open_client, clock)
    with work:
        _complete(work.files, capture)
        work.files.move(State.POSTPONED, State.WAITING)
        _look_at(work.files, work.blobs)
        expected = work.files.count(State.WAITING, State.WITHOUT_ADDRESS)

        def tell(done: int) -> None:
            if expected:
                on_progress(FileProgress(done, expected, work.requests))

        work.finish(tell)
        for kind in (ASSET, COVER):  # only asking for an asset tells of a missing scope
            work.files.move(State.WITHOUT_ADDRESS, State.WAITING, kind=kind)
            work.finish(tell)
        work.files.move(State.POSTPONED, State.FAILED)
        work.files.move(State.WAITING, State.FAILED, problem=work.given_up or NOT_TRIED)
        totals = _join(capture, work.files)
    _charge(capture, work)
    return _note(capture, totals)


def leave_files(capture: Capture) -> FileTotals:
    """Fetch nothing: the snapshot holds what the records say of files, and says so."""
    if capture.facts.files is not None:
        return capture.facts.files  # an earlier process of this run has fetched them
    rows = capture.facts.tables[_NAME].rows
    return _note(capture, FileTotals(count=rows, not_fetched=rows))


def _fetching(capture: Capture, data: DataFolder, open_client: OpenClient, clock: Clock | None) -> Fetching:
    blobs, base_url = Blobs(data, capture.facts.tenant), capture.facts.base_url
    return Fetching(lambda: _list_of(capture, data), blobs, base_url=base_url, open_client=open_client, clock=clock)


def _charge(capture: Capture, work: Fetching) -> None:
    if work.requests:
        capture.facts.files_requests += work.requests
        capture.save()


def _note(capture: Capture, totals: FileTotals) -> FileTotals:
    capture.facts.files = totals
    capture.save()
    return totals


def _list_of(capture: Capture, data: DataFolder) -> FileList:
    """The list in the capture's folder; a new one is told what earlier snapshots have."""
    files = FileList(capture.path, time.monotonic())
    if files.is_new:
        files.know(_kept_before(data, capture.facts.tenant))
    return files


def _kept_before(data: DataFolder, tenant: str) -> Iterator[Known]:
    """The contents that the newest snapshots of a tenant have, back to the newest complete one that has any."""
    holding = (one for one in reversed(data.snapshots(tenant)) if one.manifest.files.kept)
    for snapshot in islice(holding, EARLIER):
        with suppress(StorageError):  # a damaged one only costs transfers
            yield from _kept_in(data, snapshot)
        if snapshot.manifest.complete:
            return


def _kept_in(data: DataFolder, snapshot: Snapshot) -> Iterator[Known]:
    table = f"{snapshot.key}/{snapshot.manifest.tables[_NAME].path}"
    with (
        storage_errors(data.objects.address_of(table)),
        data.objects.open(table) as content,
        pq.ParquetFile(content) as file,
    ):
        for batch in row_batches(file, ["content_key", "status", "sha256", "bytes", "etag"], ROWS):
            for row in batch.to_pylist():
                if row["status"] == KEPT:
                    yield Known(row["content_key"], row["sha256"], row["bytes"], row["etag"])


def _complete(files: FileList, capture: Capture) -> None:
    """Want every content that the records name: some came without an address, or were read by a process that died."""
    names = ["content_key", "kind", "publication_id", "asset_id", "size"]
    with capture.open_file(_NAME) as file:
        for batch in row_batches(file, names, ROWS):
            rows = (FileReference(**row, address=None) for row in batch.to_pylist())
            files.add(rows, time.monotonic())


def _look_at(files: FileList, blobs: Blobs) -> None:
    """Whether what an earlier run kept is still there, in its size; what is not is wanted again."""
    for some in files.claimed():
        there = {one.content_key for one in some if one.sha256 and blobs.size(one.sha256) == one.bytes}
        files.settle(there, [one.content_key for one in some if one.content_key not in there])


def _join(capture: Capture, files: FileList) -> FileTotals:
    """Write into the table what became of each file, and count."""
    tally = files.tally()
    totals = FileTotals(new=tally.new, bytes=tally.bytes)
    path = capture.table_path(PUBLICATION_FILES)
    joined = path.with_suffix(".joined")
    with capture.open_file(_NAME) as file, table_writer(joined, PUBLICATION_FILES) as writer:
        for batch in row_batches(file, rows=ROWS):
            writer.write(_with_outcomes(batch, files, totals))
    with storage_errors(path):
        joined.replace(path)
    capture.add_table(_NAME, path, totals.count)
    return totals


def _with_outcomes(batch: pa.RecordBatch, files: FileList, totals: FileTotals) -> pa.RecordBatch:
    keys = cast("list[str]", batch.column("content_key").to_pylist())
    outcomes = files.outcomes(keys)
    nothing = Known("", None, None, None, NOT_TRIED)
    found = [outcomes.get(key, nothing) for key in keys]
    columns: dict[str, list[Any]] = {
        "status": [KEPT if one.sha256 else FAILED for one in found],
        "sha256": [one.sha256 for one in found],
        "bytes": [one.bytes for one in found],
        "etag": [one.etag for one in found],
        "problem": [None if one.sha256 else one.problem for one in found],
    }
    for name, values in columns.items():
        position = batch.schema.get_field_index(name)
        field = batch.schema.field(position)
        batch = batch.set_column(position, field, pa.array(values, field.type))
    _count(batch, columns["status"], totals)
    return batch


def _count(batch: pa.RecordBatch, states: list[str], totals: FileTotals) -> None:
    totals.count += len(states)
    totals.kept += states.count(KEPT)
    for position, state in enumerate(states):
        if state == KEPT:
            continue
        totals.failed += 1
        if len(totals.failures) < SHOWN:
            [row] = batch.slice(position, 1).to_pylist()
            name = row["name"] or row["filename"]
            shown = None if name is None else outside_text(name, 120)
            totals.failures.append(
                FailedFile(row["publication_id"], row["kind"], row["asset_id"], shown, row["problem"] or NOT_TRIED)
            )
