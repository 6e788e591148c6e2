"""Objects as DuckDB reads them: a file system in Python that it asks for addresses."""

from __future__ import annotations

import io
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


class BucketFiles(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The objects of one store, read-only, under their addresses."""

    cachable = False

    def __init__(self, objects: Sized) -> None:
        super().__init__()
        self._objects = objects
        self._sizes: dict[str, int] = {}
        self.protocol = objects.address.partition("://")[0]

    def open(self, path: str, mode: str = "rb", **_: Any) -> io.BufferedReader:
        """An object, to be read."""
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        return self._objects.reader(self._key(path), self._size(path))

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
