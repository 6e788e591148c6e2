"""Fetches the files on a file list with a few threads, during the listing that fills it or after it (I12).

A signed address expires after some minutes. Files are therefore fetched soon after their page is read, and the listing waits when they fall
behind. An expired address is replaced by a fresh one. A file that cannot be fetched is recorded with the reason; it never ends the run.
"""

from __future__ import annotations

import threading
import time
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
from pipelines.store.parquet import row_batches
from pipelines.store.snapshots.blobs import Blobs
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.file_list import FileList, Known, Wanted
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

PARALLEL_FILES = 8

MOST_SECONDS_WAITING = 120.0
"""Seconds that a file may wait before the listing waits for it: each expired address costs a request."""

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
        self._changed = threading.Condition()
        self._names = count(1)
        self._threads: list[threading.Thread] = []
        self._listing_ended = False
        self._failure: BaseException | None = None
        self._failed_in_a_row = 0
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
        """Add the files of the page at the address `page`, which was read. Returns once no file waits too long."""
        if files := addressed_files(map(bytes, records)):
            self.files.add((resolved(file, page) for file in files), self._clock.monotonic())
            self._begin()
        with self._changed:
            while self._is_late() and self._goes_on():
                self._changed.wait(1.0)
        self._raise_failure()

    def finish(self, on_done: Callable[[int], None]) -> None:
        """Work until no file waits. `on_done` receives the number of files tried, now and then. May be called again for another round."""
        self._listing_ended = True
        self._begin()
        while any(thread.is_alive() for thread in self._threads):
            with self._changed:
                self._changed.wait(0.5)
            on_done(self.tried)
        self._threads.clear()
        self._raise_failure()

    def __enter__(self) -> Self:
        self.client = self._clients.enter_context(self._open_client())
        self._transfers = Downloads(self._capture.facts.base_url, client=self.client, clock=self._clock)
        self._addresses = SignedUrls(self.client)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._give_up("the listing is over")
        try:
            if kind is None:
                for thread in self._threads:
                    thread.join()
                self._raise_failure()
        finally:
            self._stopped.set()
            self._transfers.close()
            self._clients.close()
            for thread in self._threads:
                thread.join(SHUTDOWN_SECONDS)
            self.blobs.close()
            if self._list is not None:
                self._list.close()
        if kind is None:
            self._capture.announce(self.client.announced)
            if self.client.requests:
                self._capture.facts.files_requests += self.client.requests
                self._capture.save()

    def _is_late(self) -> bool:
        since = self._list.waiting_since() if self._list is not None else None
        return since is not None and self._clock.monotonic() - since > MOST_SECONDS_WAITING

    def _goes_on(self) -> bool:
        return not (self.given_up or self._failure or self._stopped.is_set())

    def _give_up(self, why: str) -> None:
        with self._changed:
            self.given_up = self.given_up or why
            self._changed.notify_all()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _begin(self) -> None:
        while len(self._threads) < PARALLEL_FILES:
            thread = threading.Thread(target=self._work, name="files", daemon=True)
            self._threads.append(thread)
            thread.start()
        with self._changed:
            self._changed.notify_all()

    def _work(self) -> None:
        try:
            while (wanted := self._next()) is not None:
                self._fetch(wanted)
                with self._changed:
                    self.tried += 1
                    self._changed.notify_all()
        except BaseException as error:  # noqa: BLE001  every error must reach the thread that waits for the files
            with self._changed:
                if not self._stopped.is_set():  # else the stop itself broke a request
                    self._failure = self._failure or error
                self._changed.notify_all()

    def _next(self) -> Wanted | None:
        with self._changed:
            while self._goes_on():
                if (wanted := self.files.take()) is not None:
                    return wanted
                if self._listing_ended:
                    break
                self._changed.wait()
            return None

    def _fetch(self, wanted: Wanted) -> None:
        known = wanted.known
        if self._is_stored(known) and not known.content_key.startswith(UNSURE):
            self.files.mark_kept(known, new=False)
            return
        try:
            outcome, is_new = self._addresses.fetch(
                wanted.reference, wanted.reference.address, lambda address: self._download(wanted, address)
            )
        except DownloadError as error:
            self._note_failure(wanted, error)
            return
        if not self._stopped.is_set():  # else the list has it as under way
            self._failed_in_a_row = 0
            self.files.mark_kept(outcome, new=is_new)

    def _note_failure(self, wanted: Wanted, error: DownloadError) -> None:
        if self._stopped.is_set():
            return
        self.files.mark_failed(wanted.reference.content_key, str(error), temporary=error.may_pass)
        self._failed_in_a_row = self._failed_in_a_row + 1 if error.may_pass else 0
        if self._failed_in_a_row >= MOST_FAILURES_IN_A_ROW:
            self._give_up(f"not tried, after {MOST_FAILURES_IN_A_ROW} failures in a row; the last one: {error}")

    def _is_stored(self, known: Known) -> bool:
        return known.sha256 is not None and self.blobs.size(known.sha256) == known.bytes

    def _download(self, wanted: Wanted, address: str) -> _Stored:
        known = wanted.known
        etag = known.etag if self._is_stored(known) else None
        with self.blobs.incoming(str(next(self._names))) as (path, file):
            result = self._transfers.fetch(address, file, size=wanted.reference.size, etag=etag)
            if result is None:
                return known, False
            file.flush()
            self.blobs.store(path, result.sha256)
        version = result.etag if known.content_key.startswith(UNSURE) else None
        return Known(known.content_key, result.sha256, result.size, version, result.remark), True


def _open_list(capture: Capture, data: DataFolder) -> FileList:
    """The file list of a capture. A new one starts with the contents of earlier snapshots."""
    files = FileList(capture.path, time.monotonic())
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
