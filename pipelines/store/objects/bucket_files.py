"""The objects of a store as a file system in Python, for DuckDB.

obstore has one, too (`obstore.fsspec`), but its open files have one position for all threads, and DuckDB reads with several.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem


class BucketFiles(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The objects of the bucket at an address, read-only. `size`: of an object, by its key; `reader`: opens one of this size."""

    cachable = False

    def __init__(
        self, address: str, size: Callable[[str], int | None], reader: Callable[[str, int], io.RawIOBase]
    ) -> None:
        super().__init__()
        self._address = address
        self._size = size
        self._reader = reader
        self._sizes: dict[str, int] = {}
        """Key → bytes. DuckDB asks again and again, and objects never change."""
        self.protocol = address.partition("://")[0]

    def open(self, path: str, mode: str = "rb", **_: Any) -> io.RawIOBase:
        """Open an object for reading."""
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        return self._reader(self._key(path), self.info(path)["size"])

    def glob(self, path: str, **_: Any) -> list[str]:
        """Returns the path itself: an address names one object, and a missing one shows when it is opened."""
        return [path]

    def exists(self, path: str, **_: Any) -> bool:
        """Whether the object exists, whatever its size."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Name, size and type of an object."""
        key = self._key(path)
        if key not in self._sizes:
            size = self._size(key)
            if size is None:
                raise FileNotFoundError(path)
            self._sizes[key] = size
        return {"name": path, "size": self._sizes[key], "type": "file"}

    def modified(self, _path: str) -> datetime:
        """A fixed date: objects never change."""
        return datetime(2026, 1, 1, tzinfo=UTC)

    def _key(self, path: str) -> str:
        address = path if "://" in path else f"{self.protocol}://{path}"
        return address.removeprefix(f"{self._address}/")
