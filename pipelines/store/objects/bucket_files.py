"""The objects of a store as a file system in Python, for DuckDB."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

from fsspec import AbstractFileSystem


class SizedObjects(Protocol):
    """A store that opens readers of objects of known size."""

    address: str

    def size(self, key: str) -> int | None:
        """Size of an object in bytes; None where there is none."""
        ...

    def reader(self, key: str, size: int) -> io.BufferedReader:
        """A reader of an object of this size."""
        ...


class _PerThreadReader:
    """One open file for DuckDB, whose threads seek and read by turns: each thread has a position of its own.

    With one position for all, a thread could read where another one has just sought: wrong bytes, and seldom an error.
    """

    def __init__(self, opened: Callable[[], io.BufferedReader]) -> None:
        self._opened = opened
        self._local = threading.local()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set this thread's position."""
        return self._reader().seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Read from this thread's position."""
        return self._reader().read(size)

    def tell(self) -> int:
        """Returns this thread's position."""
        return self._reader().tell()

    def close(self) -> None:
        """Nothing to close: a reader holds no connection."""

    def _reader(self) -> io.BufferedReader:
        if not hasattr(self._local, "reader"):
            self._local.reader = self._opened()
        reader: io.BufferedReader = self._local.reader
        return reader


class BucketFiles(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The objects of one store, read-only, under their addresses."""

    cachable = False

    def __init__(self, objects: SizedObjects) -> None:
        super().__init__()
        self._objects = objects
        self._sizes: dict[str, int] = {}
        self.protocol = objects.address.partition("://")[0]

    def open(self, path: str, mode: str = "rb", **_: Any) -> _PerThreadReader:
        """Open an object for reading."""
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        key, size = self._key(path), self._size(path)
        return _PerThreadReader(lambda: self._objects.reader(key, size))

    def glob(self, path: str, **_: Any) -> list[str]:
        """Returns the path itself: an address names one object, and a missing one shows when it is opened."""
        return [path]

    def exists(self, path: str, **_: Any) -> bool:
        """Whether the object exists."""
        with suppress(FileNotFoundError):
            return self._size(path) > 0
        return False

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Name, size and type of an object."""
        return {"name": path, "size": self._size(path), "type": "file"}

    def modified(self, _path: str) -> datetime:
        """A fixed date: objects never change."""
        return datetime(2026, 1, 1, tzinfo=UTC)

    def _size(self, path: str) -> int:
        """Returns a size, and asks the store once: DuckDB asks again and again, and objects never change."""
        if path not in self._sizes:
            size = self._objects.size(self._key(path))
            if size is None:
                raise FileNotFoundError(path)
            self._sizes[path] = size
        return self._sizes[path]

    def _key(self, path: str) -> str:
        address = path if "://" in path else f"{self.protocol}://{path}"
        return address.removeprefix(f"{self._objects.address}/")
