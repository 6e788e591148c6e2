"""The files step of a backup: fetches the content of every file that the records name, and writes the outcomes into the table.

While publications are listed, `fetching` fetches the files of their pages. `fetch_files` then does the rest: temporary failures, files
without an address, and files that the list lacks. Both can be repeated: stored contents are not fetched again (I9).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from pipelines.backup.fetching import FileFetcher
from pipelines.backup.read import Progress
from pipelines.records.files import ASSET, COVER, FAILED, KEPT, FileReference
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock
from pipelines.service.redaction import outside_text
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import row_batches
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import FailedFile, FileTotals
from pipelines.store.snapshots.file_list import FileList, Known, State
from pipelines.store.snapshots.snapshots import DataFolder

MOST_FAILURES = 100
"""Failed files in the manifest; the table has all of them."""

BATCH_ROWS = 10_000
"""Rows of a table per batch."""

LEFT = "files that were left"
"""What the progress after the listing is about."""

NOT_TRIED = "not tried"
_NAME = PUBLICATION_FILES.name


def fetch_files(
    capture: Capture,
    data: DataFolder,
    open_client: Callable[[], AbstractContextManager[LibraryClient]],
    on_progress: Callable[[Progress], None] = lambda _: None,
    clock: Clock | None = None,
) -> None:
    """Fetch the files that are left after the listing, and write the outcome of each file into `publication_files`."""
    if not capture.facts.tables[_NAME].rows:
        _record_totals(capture, FileTotals())
        return
    with FileFetcher(capture, data, open_client, clock) as fetcher:
        _add_missing(fetcher.files, capture)
        fetcher.files.move(State.POSTPONED, State.WAITING)
        expected = fetcher.files.count(State.WAITING, State.WITHOUT_ADDRESS)

        def report(tried: int) -> None:
            if expected:
                on_progress(Progress(LEFT, tried, expected, fetcher.client.requests, done="fetched"))

        fetcher.finish(report)
        for kind in (ASSET, COVER):  # assets first: only a refused asset names a missing scope
            fetcher.files.move(State.WITHOUT_ADDRESS, State.WAITING, kind=kind)
            fetcher.finish(report)
        fetcher.files.move(State.POSTPONED, State.FAILED)
        fetcher.files.move(State.WAITING, State.FAILED, problem=fetcher.given_up or NOT_TRIED)
        totals = _write_outcomes(capture, fetcher.files)
    _record_totals(capture, totals)


def skip_files(capture: Capture) -> None:
    """Fetch nothing. The snapshot has the records' descriptions of files only, and the manifest says so."""
    if capture.facts.files is None:  # else an earlier process of this run has fetched them
        rows = capture.facts.tables[_NAME].rows
        _record_totals(capture, FileTotals(count=rows, not_fetched=rows))


def _record_totals(capture: Capture, totals: FileTotals) -> None:
    capture.facts.files = totals
    capture.save()


def _add_missing(files: FileList, capture: Capture) -> None:
    """Add all contents that the records name: some had no address, others were read by a process that died."""
    names = ["content_key", "kind", "publication_id", "asset_id", "size"]
    with capture.open_file(_NAME) as file:
        for batch in row_batches(file, names, BATCH_ROWS):
            rows = (FileReference(**row, address=None) for row in batch.to_pylist())
            files.add(rows)


def _write_outcomes(capture: Capture, files: FileList) -> FileTotals:
    """Write the outcome of each file into the table, and count the outcomes."""
    totals = files.totals()
    path = capture.table_path(PUBLICATION_FILES)
    joined = path.with_suffix(".joined")
    with capture.open_file(_NAME) as file, capture.writer(PUBLICATION_FILES, joined) as writer:
        for batch in row_batches(file, PUBLICATION_FILES.schema.names, BATCH_ROWS):
            writer.write(_with_outcomes(batch, files, totals))
    with storage_errors(path):
        joined.replace(path)
    capture.add_table(_NAME, path, totals.count)
    return totals


def _with_outcomes(batch: pa.RecordBatch, files: FileList, totals: FileTotals) -> pa.RecordBatch:
    rows = batch.to_pylist()
    outcomes = files.outcomes([row["content_key"] for row in rows])
    for row in rows:
        outcome = outcomes.get(row["content_key"], _NO_OUTCOME)
        row["status"] = KEPT if outcome.sha256 else FAILED
        row |= {"sha256": outcome.sha256, "bytes": outcome.bytes, "etag": outcome.etag, "problem": outcome.problem}
        _count(row, totals)
    return pa.RecordBatch.from_pylist(rows, schema=batch.schema)


_NO_OUTCOME = Known("", None, None, None, NOT_TRIED)


def _count(row: Mapping[str, Any], totals: FileTotals) -> None:
    totals.count += 1
    totals.total_bytes += row["bytes"] or 0
    if row["status"] == KEPT:
        totals.kept += 1
        totals.packed += row["problem"] is not None
        return
    totals.failed += 1
    if len(totals.failures) < MOST_FAILURES:
        name = row["name"] or row["filename"]
        safe_name = None if name is None else outside_text(name, 120)
        totals.failures.append(
            FailedFile(row["publication_id"], row["kind"], row["asset_id"], safe_name, row["problem"] or NOT_TRIED)
        )
