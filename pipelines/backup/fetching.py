"""Fetches the files on a file list with a few threads, during the listing that fills it or after it (I12).

A signed address expires after some minutes. Files are therefore fetched soon after their page is read, and the listing waits when they fall
behind. An expired address is replaced by a fresh one. A file that cannot be fetched is recorded with the reason; it never ends the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import count, islice
from typing import Self

import msgspec

from pipelines.errors import StorageError
from pipelines.records.files import KEPT, UNSURE, addressed_files, resolved
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.files.download import DownloadError, Downloads
from pipelines.service.files.signed_urls import SignedUrls
from pipelines.service.threads import WorkerPool
from pipelines.store.parquet import row_batches
from pipelines.store.snapshots.blobs import Blobs
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.file_list import FileList, FileTask, Known
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

PARALLEL_FILES = 8

MOST_WAITING = 200
"""Files that may wait before the listing waits for them: an address expires after some minutes, and a fresh one costs a request."""

MOST_FAILURES_IN_A_ROW = 50
"""Temporary failures in a row before the rest is given up: the storage is down."""

SHUTDOWN_SECONDS = 5.0
"""Wait for threads at the end. Those that do not react, for example during a name lookup, are left behind."""

MOST_EARLIER_SNAPSHOTS = 5
"""Snapshots at most that are searched for stored contents."""

BATCH_ROWS = 10_000
"""Rows of a table per batch."""

_Stored = tuple[Known, bool]
"""A content that is a blob, and whether it was fetched just now."""


class FileFetcher:
    """Threads that work through a `FileList` for the length of a `with` block.

    At its end, downloads in progress are finished; after an error they are left to the next run. The list is created on first use, so that
    a library without files has none. `open_client` opens a client of the library, for files on its host and for fresh addresses; its
    requests are counted apart from those of the listing. Needs the tenant's lease.
    """

    def __init__(
        self,
        capture: Capture,
        data: DataFolder,
        open_client: Callable[[], AbstractContextManager[LibraryClient]],
        clock: Clock | None = None,
    ) -> None:
        self._capture, self._data = capture, data
        self._list: FileList | None = None
        self.blobs = Blobs(data, capture.facts.tenant)
        self._stopped = threading.Event()
        self._clock = clock or SystemClock(self._stopped)
        self._open_client = open_client
        self._clients = ExitStack()
        self._names = count(1)
        self._pool = WorkerPool(self._work, PARALLEL_FILES, waiting=MOST_WAITING)
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._taken = 0
        self.tried = 0
        """Contents that were tried."""
        self.given_up = ""
        """Why no more files are tried; empty while they are."""

    @property
    def files(self) -> FileList:
        """The list."""
        if self._list is None:
            self._list = _open_list(self._capture, self._data)
        return self._list

    def on_page(self, records: Sequence[msgspec.Raw], page: str) -> None:
        """Add the files of the page at the address `page`, which was read. Returns once few enough wait."""
        if files := addressed_files(map(bytes, records)):
            self.files.add(resolved(file, page) for file in files)
            self._submit()
        self._pool.raise_failure()  # rather than once the list is read

    def finish(self, on_done: Callable[[int], None]) -> None:
        """Work until no file waits. `on_done` receives the number of files tried, now and then. May be called again for another round."""

        def is_done() -> bool:
            on_done(self.tried)
            return self.tried == self._taken

        self._submit(on_done)
        self._pool.wait_until(is_done)

    def __enter__(self) -> Self:
        self.client = self._clients.enter_context(self._open_client())
        self._transfers = Downloads(self._capture.facts.base_url, client=self.client, clock=self._clock)
        self._addresses = SignedUrls(self.client)
        self._pool.__enter__()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.given_up = self.given_up or "not tried, because the listing was over"
        if kind is not None:
            self._stopped.set()
        try:
            self._pool.__exit__(kind)
        finally:
            self._stopped.set()
            self._transfers.close()
            self._clients.close()
            self._pool.join(SHUTDOWN_SECONDS)
            self.blobs.close()
            if self._list is not None:
                self._list.close()
        if kind is None:
            self._capture.announce(self.client.announced)
            if self.client.requests:
                self._capture.facts.files_requests += self.client.requests
                self._capture.save()

    def _submit(self, on_done: Callable[[int], None] = lambda _: None) -> None:
        while not self.given_up and (task := self.files.take()) is not None:
            self._taken += 1
            self._pool.submit(task)
            on_done(self.tried)

    def _work(self, task: FileTask) -> None:
        if self.given_up:
            self.files.mark_failed(task.reference.content_key, self.given_up, temporary=True)
        else:
            self._fetch(task)
        with self._lock:
            self.tried += 1

    def _fetch(self, task: FileTask) -> None:
        known = task.known
        if self._is_stored(known) and not known.content_key.startswith(UNSURE):
            self.files.mark_kept(known, new=False)
            return
        try:
            outcome, is_new = self._addresses.fetch(
                task.reference, task.reference.address, lambda address: self._download(task, address)
            )
        except DownloadError as error:
            self._note_failure(task, error)
            return
        if not self._stopped.is_set():  # else the list has it as under way
            self._failed_in_a_row = 0
            self.files.mark_kept(outcome, new=is_new)

    def _note_failure(self, task: FileTask, error: DownloadError) -> None:
        if self._stopped.is_set():
            return
        self.files.mark_failed(task.reference.content_key, str(error), temporary=error.may_pass)
        self._failed_in_a_row = self._failed_in_a_row + 1 if error.may_pass else 0
        if self._failed_in_a_row >= MOST_FAILURES_IN_A_ROW:
            self.given_up = f"not tried, after {MOST_FAILURES_IN_A_ROW} failures in a row; the last one: {error}"

    def _is_stored(self, known: Known) -> bool:
        return known.sha256 is not None and self.blobs.size(known.sha256) == known.bytes

    def _download(self, task: FileTask, address: str) -> _Stored:
        known = task.known
        etag = known.etag if self._is_stored(known) else None
        with self.blobs.incoming(str(next(self._names))) as (path, file):
            result = self._transfers.fetch(address, file, size=task.reference.size, etag=etag)
            if result is None:
                return known, False
            file.flush()
            self.blobs.store(path, result.sha256)
        version = result.etag if known.content_key.startswith(UNSURE) else None
        return Known(known.content_key, result.sha256, result.size, version, result.remark), True


def _open_list(capture: Capture, data: DataFolder) -> FileList:
    """The file list of a capture. A new one starts with the contents of earlier snapshots."""
    files = FileList(capture.path)
    if files.is_new:
        files.add_known(_known_contents(data, capture.facts.tenant))
    return files


def _known_contents(data: DataFolder, tenant: str) -> Iterator[Known]:
    """The contents of a tenant's newest snapshots, back to the newest complete one with files."""
    with_files = (snapshot for snapshot in reversed(data.snapshots(tenant)) if snapshot.manifest.files.kept)
    for snapshot in islice(with_files, MOST_EARLIER_SNAPSHOTS):
        with suppress(StorageError):  # a damaged snapshot only costs downloads
            yield from _contents_of(data, snapshot)
        if snapshot.manifest.complete:
            return


def _contents_of(data: DataFolder, snapshot: Snapshot) -> Iterator[Known]:
    with data.open_table(snapshot, PUBLICATION_FILES.name) as file:
        for batch in row_batches(file, ["content_key", "status", "sha256", "bytes", "etag", "problem"], BATCH_ROWS):
            for row in batch.to_pylist():
                if row["status"] == KEPT:
                    yield Known(row["content_key"], row["sha256"], row["bytes"], row["etag"], row["problem"])
