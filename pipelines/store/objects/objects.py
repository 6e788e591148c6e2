"""What a store of objects can do, be it a folder or a bucket; snapshots and stored files need no more than this.

An object is some bytes under a key such as `snapshots/tenant=old/snapshot=20261120T020000Z/manifest.json`. It appears as a whole or not at
all and never changes. There is no rename: a store that has one may use it, but no promise rests on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Protocol

import duckdb

from pipelines.errors import StorageError


class ObjectInfo(NamedTuple):
    """One object of a listing."""

    key: str
    size: int


class Objects(Protocol):
    """Objects by their keys. Reading what is not there raises `FileNotFoundError`; whatever else goes wrong is a `BookferryError`."""

    address: str
    """Of all of it, for people: an absolute path, or `s3://bucket/prefix`."""

    def address_of(self, key: str) -> str:
        """Where an object is, as people and DuckDB name it."""
        ...

    def put(self, key: str, content: bytes) -> bool:
        """Keep `content` under a key that is free. Of two that do so at once one succeeds; False where the key is taken."""
        ...

    def put_file(self, key: str, path: Path) -> bool:
        """Keep a file, which nobody changes any more, under a key that is free; False where the key is taken.

        Memory does not grow with the file (I11). Stores know no condition for what is sent in parts, so that two who send a large file
        under one key at once must send the same one: keys are made from the content, or claimed before.
        """
        ...

    def replace(self, key: str, content: bytes) -> None:
        """Keep `content` in place of whatever is there; a reader sees the old or the new."""
        ...

    def replace_file(self, key: str, path: Path) -> None:
        """Keep a file in place of whatever is there, as `replace` does; memory does not grow with it (I11). The file may go with it."""
        ...

    def read(self, key: str) -> bytes:
        """All of a small object."""
        ...

    def read_all(self, keys: Iterable[str]) -> Iterator[bytes | None]:
        """Many small objects, in the order of their keys; None in the place of one that is not there."""
        ...

    def open(self, key: str) -> BufferedReader:
        """A reader of an object, from any place in it."""
        ...

    def size(self, key: str) -> int | None:
        """Bytes of an object; None where there is none."""
        ...

    def below(self, folder: str) -> Iterator[ObjectInfo]:
        """Everything below a folder, sorted by key, never in memory as a whole."""
        ...

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder, sorted."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no mistake."""
        ...

    def publish(self, folder: Path, key: str, files: Sequence[str]) -> None:
        """Make `files` of a local folder, of which the last one counts, the objects below `key`; the local folder goes.

        Whoever finds the last one finds all. Whoever is killed here leaves what `clear` removes, or the work that is to be repeated.
        """
        ...

    def hide(self, key: str, last: str) -> None:
        """Take back what was published: from now on nobody finds the object `last` below `key`. `clear` removes the rest."""
        ...

    def clear(self, folder: str) -> None:
        """Remove what was hidden, or half published by a process that died, below a folder that nobody else works on."""
        ...

    def unfinished(self, folder: str) -> set[str]:
        """The keys below a folder of what is half published or half removed."""
        ...

    def attach(self, database: duckdb.DuckDBPyConnection) -> None:
        """Let a connection read objects by their addresses."""
        ...


def checked(key: str) -> str:
    """A key that stays where it belongs (I13): no part of it is empty, leads elsewhere or holds what some store does not take."""
    parts = key.split("/")
    if any(part in ("", ".", "..") for part in parts) or not key.isprintable() or "\\" in key:
        raise StorageError(f"{key!r} cannot be the name of an object in the data folder.")
    return key
