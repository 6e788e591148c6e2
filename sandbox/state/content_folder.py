"""The folder for the bytes of uploads, with a file for each content, so that no upload is in memory."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

_CHUNK = 256 * 1024
_UNFINISHED = ".part"


class ContentFolder:
    """Contents by their SHA-256. Without a path it is a temporary folder, which `close` removes.

    The folder is created with its first content.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._making = threading.Lock()
        self._remove: Callable[[], object] | None = None
        if path is not None and path.is_dir():
            for unfinished in path.glob(f"*{_UNFINISHED}"):
                unfinished.unlink(missing_ok=True)  # from an upload that a kill interrupted

    def begin_content(self) -> ContentWriter:
        """Begins a content."""
        return ContentWriter(self._made())

    def chunks(self, sha256: str, start: int, stop: int) -> Iterator[bytes]:
        """Yields a part of a content."""
        with (self._made() / sha256).open("rb") as file:
            file.seek(start)
            while start < stop and (data := file.read(min(_CHUNK, stop - start))):
                start += len(data)
                yield data

    def close(self) -> None:
        """Removes a temporary folder."""
        if self._remove is not None:
            self._remove()

    def _made(self) -> Path:
        with self._making:
            if self._path is None:
                self._path = Path(tempfile.mkdtemp(prefix="library-sandbox-"))
                self._remove = weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
            self._path.mkdir(parents=True, exist_ok=True)
            return self._path


class ContentWriter:
    """Writes and hashes bytes as they arrive."""

    def __init__(self, folder: Path) -> None:
        descriptor, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=folder)
        self._file = os.fdopen(descriptor, "wb")
        self._path = Path(name)
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False)
        self.size = 0

    def write(self, data: bytes) -> int:
        """Writes bytes."""
        self._sha256.update(data)
        self._md5.update(data)
        self.size += len(data)
        return self._file.write(data)

    def commit(self) -> tuple[str, str]:
        """Moves the content to its final path, durably; returns SHA-256 and MD5."""
        sha256 = self._sha256.hexdigest()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(self._path.with_name(sha256))
        return sha256, self._md5.hexdigest()

    def discard(self) -> None:
        """Discards bytes that were not committed."""
        self._file.close()
        self._path.unlink(missing_ok=True)
