"""The bytes of files, each content once under its SHA-256 (I12). A blob appears whole or not at all, and never changes.

What arrives goes into a file of its own first; names from outside are no part of any path (I13).
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pipelines.errors import StorageError
from pipelines.store.durable import storage_errors, sync_folder
from pipelines.store.snapshots import DataFolder

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """Where the content of one tenant's files is kept. Make it under the tenant's lease: what a run that died had begun is cleared."""

    def __init__(self, data: DataFolder, tenant: str) -> None:
        self._data = data
        self._arriving = data.blobs_path.with_name("tmp") / f"tenant={tenant}"
        self._lock = threading.Lock()
        self._unsettled: set[Path] = set()
        with storage_errors(self._arriving):
            with suppress(FileNotFoundError):
                shutil.rmtree(self._arriving)
            self._arriving.mkdir(parents=True)

    @contextmanager
    def arriving(self, name: str) -> Iterator[tuple[Path, BinaryIO]]:
        """An empty file to write to, which is gone at the end of the block unless it was kept."""
        path = self._arriving / name
        with storage_errors(path):
            try:
                with path.open("w+b") as file:
                    yield path, file
            finally:
                path.unlink(missing_ok=True)

    def keep(self, path: Path, sha256: str) -> bool:
        """Take the file at `path` in as the blob of this SHA-256, which the caller has computed; whether it was new here.

        One that is there in another size was damaged by the disk, and is replaced.
        """
        target = self._path(sha256)
        with storage_errors(target):
            with path.open("rb") as file:
                os.fsync(file.fileno())
            if self.size(sha256) == path.stat().st_size:
                path.unlink()
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        with self._lock:
            self._unsettled.add(target.parent)
        return True

    def size(self, sha256: str) -> int | None:
        """Bytes of a blob; none where it is not there."""
        with storage_errors(self._path(sha256)), suppress(FileNotFoundError):
            return self._path(sha256).stat().st_size
        return None

    def open(self, sha256: str) -> BinaryIO:
        """A blob to read; a `StorageError` where it is not there."""
        with storage_errors(self._path(sha256)):
            return self._path(sha256).open("rb")

    def settle(self) -> None:
        """Make the names of what was kept survive a power cut; call it before anything refers to them."""
        with self._lock:
            folders, self._unsettled = self._unsettled, set()
        with storage_errors(self._data.blobs_path):
            for folder in sorted(folders):
                sync_folder(folder)
            if folders:
                sync_folder(self._data.blobs_path)

    def close(self) -> None:
        """Remove the folder of what arrives."""
        shutil.rmtree(self._arriving, ignore_errors=True)

    def _path(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):
            raise StorageError(f"{sha256[:80]!r} is not a SHA-256, so there is no file of that name.")
        return self._data.blob_path(sha256)
