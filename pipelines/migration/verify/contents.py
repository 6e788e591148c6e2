"""Compares files by their bytes: each is fetched from the target and hashed on the way; nothing is stored (I12).

A file is fetched from its address in the listing, without a sign-in from a storage (I2); where that address has expired, from a fresh one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from pipelines.backup.read import Progress
from pipelines.migration.model.reasons import DIFFERING, UNREAD
from pipelines.migration.verify.discrepancies import Discrepancies, file_finding
from pipelines.records.files import COVER, FileReference, file_references, is_whole, resolved
from pipelines.records.values import as_id
from pipelines.service.client import LibraryClient
from pipelines.service.files.download import DownloadError, Downloads, Received
from pipelines.service.files.signed_urls import SignedUrls
from pipelines.service.threads import WorkerPool, worker_count
from pipelines.store.parquet import escaped, literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

STEP = 100
"""Records in memory at once."""


class _PresentFile(NamedTuple):
    """A row of `files.PRESENT`, with the JSON of its record."""

    source_id: str
    target_id: str
    kind: str
    asset_id: int | None
    description: str
    sha256: str
    size: int | None
    payload: bytes


class _NullFile:
    """Discards the bytes of a download, of which only the hash is needed. Has what `Downloads.fetch` calls."""

    def seek(self, _offset: int) -> None:
        pass

    def truncate(self) -> None:
        pass

    def write(self, _content: bytes) -> None:
        pass


class Contents:
    """Fetches the files of the table `present`, several at once.

    `raw`: the raw table of the target's publications. `on_file`: called with the progress after each file.
    """

    def __init__(
        self,
        client: LibraryClient,
        base_url: str,
        raw: Path,
        *,
        on_file: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._raw = raw
        self._client = client
        self._signed_urls = SignedUrls(client)
        self._downloads = Downloads(base_url, client=client, clock=client.clock)
        self._on_file = on_file
        self._lock = threading.Lock()
        self._done = self._compared = 0

    def check(self, database: DuckDBPyConnection, discrepancies: Discrepancies) -> int:
        """Add the files whose bytes differ. Returns how many files were compared byte for byte. `database`: has the table `present`."""
        (total,) = database.cursor().execute("SELECT count(*) FROM present").fetchone() or (0,)
        batches = database.sql(
            f"SELECT p.*, encode(r.payload) FROM present AS p JOIN read_parquet({literal(escaped(self._raw))}) AS r "  # noqa: S608
            "ON CAST(r.id AS VARCHAR) = p.target_id"
        ).to_arrow_reader(STEP)
        check = partial(self._check, discrepancies, total)
        try:
            with WorkerPool(check, worker_count(self._client.requests_per_minute)) as pool:
                for batch in batches:
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        pool.submit(_PresentFile(*row))
        finally:
            self._downloads.close()
        return self._compared

    def _check(self, discrepancies: Discrepancies, total: int, file: _PresentFile) -> None:
        finding, received = partial(file_finding, (as_id(file.source_id), as_id(file.target_id))), None
        try:
            received = self._fetch(file)
        except DownloadError as error:
            discrepancies.add([finding(UNREAD, file.kind, (file.description, ""), str(error))])
        if received is not None and received.sha256 != file.sha256:
            content = f"{received.size:,} bytes with the SHA-256 {received.sha256}"
            why = f"its bytes differ; their SHA-256 should be {file.sha256}"
            discrepancies.add([finding(DIFFERING, file.kind, (file.description, content), why)])
        with self._lock:
            self._done += 1
            self._compared += received is not None
            self._on_file(Progress("files", self._done, total, self._client.requests, 0.0, "compared", "finishing"))

    def _fetch(self, file: _PresentFile) -> Received:
        """From the address in the listing, then from a fresh one."""
        reference = next(
            (
                reference
                for reference in file_references(file.payload)
                if reference.kind == file.kind and (file.kind == COVER or reference.asset_id == file.asset_id)
            ),
            None,
        )
        if reference is None:
            raise DownloadError("its record does not show it any more")
        is_kept = is_whole(
            reference.address or "", but_host=True
        )  # else it counts from a page whose address nobody kept
        address = resolved(reference, self._client.api_url).address if is_kept else None
        return self._signed_urls.fetch(reference, address, partial(self._download, reference))

    def _download(self, reference: FileReference, address: str) -> Received:
        received = self._downloads.fetch(address, cast("BinaryIO", _NullFile()), size=reference.size)
        if received is None:
            raise DownloadError("the storage sent nothing")
        return received
