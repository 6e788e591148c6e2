"""The bytes of files, each content once under its SHA-256 (I12). A blob appears whole or not at all, and never changes.

What arrives goes into a file on this machine first; names from outside are no part of any path or key (I13).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pipelines.store.durable import storage_errors
from pipelines.store.snapshots.snapshots import DataFolder, blob_key


class Blobs:
    """Where the content of one tenant's files is kept. Make it under the tenant's lease: what a run that died had begun is cleared."""

    def __init__(self, data: DataFolder, tenant: str) -> None:
        self._objects = data.objects
        self._arriving = data.path / "files" / "tmp" / f"tenant={tenant}"
        with storage_errors(self._arriving):
            with suppress(FileNotFoundError):
                shutil.rmtree(self._arriving)
            self._arriving.mkdir(parents=True)

    @contextmanager
    def arriving(self, name: str) -> Iterator[tuple[Path, BinaryIO]]:
        """An empty file to write to, which is gone at the end of the block."""
        path = self._arriving / name
        with storage_errors(path):
            try:
                with path.open("w+b") as file:
                    yield path, file
            finally:
                path.unlink(missing_ok=True)

    def keep(self, path: Path, sha256: str) -> None:
        """Take the file at `path` in as the blob of this SHA-256, which the caller has computed, unless it is there.

        One that is there in another size was damaged by the disk, and is replaced.
        """
        found = self.size(sha256)
        if found == path.stat().st_size:
            return
        if found is not None:
            self._objects.delete(blob_key(sha256))
        self._objects.put_file(blob_key(sha256), path)

    def size(self, sha256: str) -> int | None:
        """Bytes of a blob; none where it is not there."""
        return self._objects.size(blob_key(sha256))

    def close(self) -> None:
        """Remove the folder of what arrives."""
        shutil.rmtree(self._arriving, ignore_errors=True)
