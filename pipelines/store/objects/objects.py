"""The contract of an object store, be it a folder or a bucket. Snapshots and stored files need no more than this.

An object is some bytes under a key such as `snapshots/tenant=old/snapshot=20261120T020000Z/manifest.json`. It appears as a whole or not at
all, and never changes. The contract has no rename: a store may use one internally, but callers cannot rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipelines.errors import StorageError
from pipelines.store.durable import digest_of

if TYPE_CHECKING:
    import duckdb


MANIFEST = "manifest.json"
"""The object that completes those of a snapshot."""

PARALLEL_READS = 16
"""Small objects that are read in parallel: in a bucket, each takes tens of milliseconds."""


class ObjectInfo(NamedTuple):
    """One object of a listing."""

    key: str
    size: int


class Objects(Protocol):
    """Objects by their keys. Reading a missing object raises `FileNotFoundError`; every other failure is a `BookferryError`."""

    address: str
    """The store's address, for people: an absolute path, or `s3://bucket/prefix`."""

    def address_of(self, key: str) -> str:
        """The address of an object, for people and for DuckDB."""
        ...

    def put(self, key: str, content: bytes | Path) -> bool:
        """Store bytes, or a file that no longer changes, under a free key. Returns False where it is taken; of two calls, one succeeds.

        Memory does not grow with a file (I11). Stores have no condition for uploads in parts. Two processes that store a large file under
        one key at once must therefore store the same content: keys are made from the content, or claimed beforehand.
        """
        ...

    def replace(self, key: str, content: bytes | Path) -> None:
        """Store bytes or a file under a key, taken or free; a reader sees the old content or the new."""
        ...

    def read(self, key: str) -> bytes:
        """Returns a small object."""
        ...

    def open(self, key: str) -> BufferedReader:
        """Returns a seekable reader of an object."""
        ...

    def size(self, key: str) -> int | None:
        """Returns the size of an object in bytes; None where there is none."""
        ...

    def below(self, folder: str) -> Iterator[ObjectInfo]:
        """Yields every object below a folder, sorted by key; the list is never in memory as a whole."""
        ...

    def folders(self, folder: str) -> list[str]:
        """Returns the names of the folders in a folder, sorted."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object. A missing one is no error."""
        ...

    def publish(self, folder: Path, key: str, files: Sequence[str]) -> None:
        """Turn `files` of a local folder into the objects below `key`, the manifest last, and remove the local folder.

        A reader that finds the manifest finds all of them. After a kill, `clear` removes the rest, or the local folder is still there to
        publish again.
        """
        ...

    def hide(self, key: str) -> None:
        """Withdraw a publication: readers no longer find its manifest. `clear` removes the rest."""
        ...

    def clear(self, folder: str) -> None:
        """Remove what was hidden, or half published by a process that died. Nobody else may work on this folder."""
        ...

    def unfinished(self, folder: str) -> set[str]:
        """Returns the keys below a folder that are half published or half removed."""
        ...

    def attach(self, database: duckdb.DuckDBPyConnection) -> None:
        """Let a DuckDB connection read objects by their addresses."""
        ...


def is_published(objects: Objects, key: str) -> bool:
    """Whether there is a manifest below a key."""
    return objects.size(f"{key}/{MANIFEST}") is not None


def read_if_there(objects: Objects, key: str) -> bytes | None:
    """A small object, or None where it is missing."""
    with suppress(FileNotFoundError):
        return objects.read(key)
    return None


def read_all(objects: Objects, keys: Iterable[str]) -> Iterator[bytes | None]:
    """Yields many small objects in the order of `keys`, and None for each missing one."""
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        yield from pool.map(partial(read_if_there, objects), keys)


def checked_key(key: str) -> str:
    """Returns the key if it stays within the store (I13): no part is empty, leads elsewhere or has characters that some store refuses."""
    parts = key.split("/")
    if any(part in ("", ".", "..") for part in parts) or not key.isprintable() or "\\" in key:
        raise StorageError(f"{key!r} cannot be the name of an object in the data folder.")
    return key


def fault_of(objects: Objects, key: str, size: int | None, sha256: str | None) -> tuple[str, int | None]:
    """What is wrong with an object that should have this size and this checksum, empty if nothing is; and the bytes that were read of it.

    Without `sha256`, it is not read.
    """
    address = f"{objects.address}/{key}"
    try:
        stored = objects.size(key)
        if stored is None:
            return f"{address} is missing", None
        if size not in (None, stored):
            return f"{address} has {stored:,} bytes instead of {size:,}", None
        if sha256 is None:
            return "", None
        with objects.open(key) as file:
            actual, read = digest_of(file)
    except (OSError, StorageError) as error:
        return f"{address} cannot be read ({error})", None
    return "" if actual == sha256 else f"{address} was changed: its SHA-256 is {actual} instead of {sha256}", read
