"""Proves files by their bytes: each is fetched from the target again and hashed on the way; nothing of it is kept (I12).

A file is fetched from the address that the listing brought, without a sign-in where that is a storage (I2), and from a fresh one where
that has expired.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from pipelines.migration.apply.run import ApplyProgress
from pipelines.migration.apply.worker_pool import WorkerPool, worker_count
from pipelines.migration.verify.discrepancies import COVER, DIFFERING, FILES, UNREAD, Discrepancies, Discrepancy
from pipelines.records.files import COVER as A_COVER
from pipelines.records.files import FileReference, file_references
from pipelines.service.client import LibraryClient
from pipelines.service.files.download import Downloads, Failed, Received
from pipelines.service.files.signed_urls import SignedUrls
from pipelines.store.parquet import exactly, literal

STEP = 100
"""Records whose JSON is in memory at once."""


class _Present(NamedTuple):
    """A row of `checking_files.PRESENT`, with the JSON of its record."""

    source_id: int
    target_id: int
    kind: str
    asset_id: int | None
    told: str
    sha256: str
    size: int | None
    payload: bytes


class _Nowhere(io.RawIOBase):
    """A file that forgets what is written: its hash is all that is wanted."""

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:  # noqa: ARG002  as any file's
        return 0

    def truncate(self, size: int | None = None) -> int:  # noqa: ARG002
        return 0

    def write(self, content: Any) -> int:
        return memoryview(content).nbytes


class Contents:
    """Fetches the files of the table `present`, several at once. `on_file` hears how far it is."""

    def __init__(
        self,
        client: LibraryClient,
        base_url: str,
        raw: Path,
        *,
        on_file: Callable[[ApplyProgress], None] = lambda _: None,
    ) -> None:
        self._raw = raw
        self._client = client
        self._addresses = SignedUrls(lambda: client)
        self._transfers = Downloads(base_url, client=lambda: client, clock=client.clock)
        self._on_file = on_file
        self._lock = threading.Lock()
        self._done = self._compared = 0

    def check(self, discrepancies: Discrepancies) -> int:
        """Add what is not the same; how many files were compared byte for byte."""
        database = discrepancies.database
        (total,) = database.cursor().execute("SELECT count(*) FROM present").fetchone() or (0,)
        found = database.sql(
            f"SELECT p.*, encode(r.payload) FROM present AS p JOIN read_parquet({literal(exactly(self._raw))}) AS r ON r.id = p.target_id"  # noqa: S608
        ).to_arrow_reader(STEP)
        check = partial(self._check, discrepancies, total)
        try:
            with WorkerPool(check, worker_count(self._client.requests_per_minute)) as crew:
                for batch in found:
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        crew.give(_Present(*row))
        finally:
            self._transfers.close()
        return self._compared

    def _check(self, discrepancies: Discrepancies, total: int, one: _Present) -> None:
        outcome = self._fetched(one)
        is_received = isinstance(outcome, Received)
        if isinstance(outcome, Failed):
            discrepancies.add([_discrepancy(UNREAD, one, None, outcome.problem)])
        elif outcome.sha256 != one.sha256:
            found = f"{outcome.size:,} bytes with the SHA-256 {outcome.sha256}"
            discrepancies.add(
                [_discrepancy(DIFFERING, one, found, f"its bytes are others; they should have {one.sha256}")]
            )
        with self._lock:
            self._done += 1
            self._compared += is_received
            client, left = self._client, total - self._done
            self._on_file(ApplyProgress(self._done, total, client.requests, left, client.requests_per_minute))

    def _fetched(self, one: _Present) -> Received | Failed:
        """By the address of the listing, then by a fresh one."""
        reference = next(
            (
                found
                for found in file_references(one.payload)
                if found.kind == one.kind and (one.kind == A_COVER or found.asset_id == one.asset_id)
            ),
            None,
        )
        if reference is None:
            return Failed("its record does not show it any more")
        outcome = self._transferred(reference, reference.address) if reference.address else Failed("", expired=True)
        if isinstance(outcome, Received) or not outcome.expired:
            return outcome
        fresh = self._addresses.ask(reference)
        if isinstance(fresh, Failed):
            return fresh
        outcome = self._transferred(reference, fresh)
        if isinstance(outcome, Received):
            self._addresses.mark_useful()
        return outcome

    def _transferred(self, reference: FileReference, address: str) -> Received | Failed:
        outcome = self._transfers.fetch(address, cast("BinaryIO", _Nowhere()), size=reference.size)
        return outcome if isinstance(outcome, Received | Failed) else Failed("the storage sent nothing")


def _discrepancy(problem: str, one: _Present, found: str | None, why: str) -> Discrepancy:
    field = COVER if one.kind == A_COVER else FILES
    return Discrepancy(problem, one.source_id, one.target_id, field, one.told, found, why)
