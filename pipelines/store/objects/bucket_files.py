"""Objects as DuckDB reads them: a file system in Python that it asks for addresses."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

from fsspec import AbstractFileSystem


class Sized(Protocol):
    """What gives readers of objects whose size is known."""

    address: str

    def size(self, key: str) -> int | None:
        """Bytes of an object; None where there is none."""
        ...

    def reader(self, key: str, size: int) -> io.BufferedReader:
        """A reader of an object of this size."""
        ...


class _OfEachThread:
    """One open file as DuckDB uses it: several threads seek and read by turns, each at its own place.

    With one place for all of them a thread would read where another one has just sought: wrong bytes, and seldom an error.
    """

    def __init__(self, opened: Callable[[], io.BufferedReader]) -> None:
        self._opened = opened
        self._local = threading.local()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, in this thread."""
        return self._reader().seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Read from where this thread is."""
        return self._reader().read(size)

    def tell(self) -> int:
        """Where this thread is."""
        return self._reader().tell()

    def close(self) -> None:
        """Nothing is held open at the store."""

    def _reader(self) -> io.BufferedReader:
        if not hasattr(self._local, "reader"):
            self._local.reader = self._opened()
        reader: io.BufferedReader = self._local.reader
        return reader


class BucketFiles(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The objects of one store, read-only, under their addresses."""

    cachable = False

    def __init__(self, objects: Sized) -> None:
        super().__init__()
        self._objects = objects
        self._sizes: dict[str, int] = {}
        self.protocol = objects.address.partition("://")[0]

    def open(self, path: str, mode: str = "rb", **_: Any) -> _OfEachThread:
        """An object, to be read."""
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        key, size = self._key(path), self._size(path)
        return _OfEachThread(lambda: self._objects.reader(key, size))

    def glob(self, path: str, **_: Any) -> list[str]:
        """No pattern: our addresses name one object each, and whether it is there shows when it is opened."""
        return [path]

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is such an object."""
        with suppress(FileNotFoundError):
            return self._size(path) > 0
        return False

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What there is to know of an object."""
        return {"name": path, "size": self._size(path), "type": "file"}

    def modified(self, _path: str) -> datetime:
        """Never: an object stays what it is."""
        return datetime(2026, 1, 1, tzinfo=UTC)

    def _size(self, path: str) -> int:
        """Asked once: DuckDB wants to know it again and again, and an object does not change."""
        if path not in self._sizes:
            size = self._objects.size(self._key(path))
            if size is None:
                raise FileNotFoundError(path)
            self._sizes[path] = size
        return self._sizes[path]

    def _key(self, path: str) -> str:
        address = path if "://" in path else f"{self.protocol}://{path}"
        return address.removeprefix(f"{self._objects.address}/")
