"""Blobs: the content of files, stored once under its SHA-256 (I12). A blob appears as a whole or not at all, and never changes.

Incoming content is written to a local file first. No path or key has a name from outside (I13).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pipelines.store.durable import storage_errors
from pipelines.store.parquet import escaped
from pipelines.store.snapshots.snapshots import DataFolder, blob_key


class Blobs:
    """The blobs of one tenant's files. Make it under the tenant's lease: it clears the leftovers of a run that died."""

    def __init__(self, data: DataFolder, tenant: str) -> None:
        self._objects = data.objects
        self._incoming = data.path / "files" / "tmp" / f"tenant={tenant}"
        with storage_errors(self._incoming):
            with suppress(FileNotFoundError):
                shutil.rmtree(self._incoming)
            self._incoming.mkdir(parents=True)

    @contextmanager
    def incoming(self, name: str) -> Iterator[tuple[Path, BinaryIO]]:
        """An empty file for the length of the block, to write incoming content to."""
        path = self._incoming / name
        with storage_errors(path):
            try:
                with path.open("w+b") as file:
                    yield path, file
            finally:
                path.unlink(missing_ok=True)

    def store(self, path: Path, sha256: str) -> None:
        """Store the file at `path` as the blob of this SHA-256, which the caller has computed, unless it is there.

        A blob of another size was damaged by the disk, and is replaced.
        """
        size = self.size(sha256)
        if size == path.stat().st_size:
            return
        if size is not None:
            self._objects.delete(blob_key(sha256))
        self._objects.put(blob_key(sha256), path)

    def size(self, sha256: str) -> int | None:
        """Size of a blob in bytes; None where there is none."""
        return self._objects.size(blob_key(sha256))

    def close(self) -> None:
        """Remove the folder of incoming content."""
        shutil.rmtree(self._incoming, ignore_errors=True)


@contextmanager
def referenced_blobs(data: DataFolder, tables: Sequence[str]) -> Iterator[Iterator[tuple[str, int | None]]]:
    """Yields the SHA-256 and size of every blob in some `publication_files` tables, each once, sorted. `tables`: their keys."""
    if not tables:
        yield iter(())
        return
    sql = "SELECT sha256, any_value(bytes) FROM files WHERE sha256 IS NOT NULL GROUP BY sha256 ORDER BY sha256"
    with data.duckdb("256MB", 1) as database:
        addresses = [escaped(data.objects.address_of(table)) for table in tables]
        database.read_parquet(addresses, union_by_name=True).create_view("files")
        result = database.execute(sql)
        yield (row for rows in iter(lambda: result.fetchmany(1000), []) for row in rows)
