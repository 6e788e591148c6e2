"""The small objects of a store as of one listing. What this machine has read before is not read again while its ETag is the same.

For `status`: forty libraries have a thousand manifests, which never change, and as many results of verifications. The listing says what is
there now, so that a snapshot that was removed, or whose manifest was damaged since, is seen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from pipelines.errors import BookferryError
from pipelines.file_access import make_folder
from pipelines.store.durable import write_atomically
from pipelines.store.objects.buckets import PARALLEL_READS, Bucket
from pipelines.store.objects.objects import ObjectInfo

CACHE = "objects.cache"
"""The file in the work folder with what was read."""


class _Read(msgspec.Struct, array_like=True):
    """An object that was read: its ETag and its content."""

    etag: str
    content: bytes


_DECODER = msgspec.msgpack.Decoder(dict[str, _Read])


class ListedBucket(Bucket):
    """A bucket whose JSON objects below some folders are as they were at its making; everything else is as it is."""

    def __init__(self, bucket: Bucket, folders: Sequence[str], work: Path) -> None:
        self.__dict__.update(bucket.__dict__)
        self._folders = tuple(f"{folder}/" for folder in folders)
        with ThreadPoolExecutor(PARALLEL_READS) as pool:
            listed = pool.map(lambda folder: [*bucket.tagged(folder, ".json")], folders)
            self._listed = {entry.key: (entry, etag) for page in listed for entry, etag in page}
        self._keys = sorted(self._listed)
        before = _cached(work / CACHE)
        same = {
            key: before[key] for key, (_, etag) in self._listed.items() if key in before and before[key].etag == etag
        }
        new = [key for key in self._listed if key not in same]
        contents = zip(new, bucket.read_all(new), strict=True)
        now = same | {key: _Read(self._listed[key][1], content) for key, content in contents if content is not None}
        self._contents = {key: read.content for key, read in now.items()}
        if now != before:
            with suppress(BookferryError, OSError):  # whoever looks may not be allowed to write
                make_folder(work)
                write_atomically(work / CACHE, msgspec.msgpack.encode(now))

    def read(self, key: str) -> bytes:
        """A listed object, or any other."""
        if not key.startswith(self._folders):
            return super().read(key)
        if key not in self._contents:
            raise FileNotFoundError(self.address_of(key))
        return self._contents[key]

    def read_all(self, keys: Iterable[str]) -> Iterator[bytes | None]:
        """The same for many."""
        return map(self._read_if_there, keys)

    def below(self, folder: str) -> Iterator[ObjectInfo]:
        """The listed objects below a folder, or those of a folder that is not listed."""
        if not f"{folder}/".startswith(self._folders):
            yield from super().below(folder)
            return
        yield from (self._listed[key][0] for key in self._keys_below(folder))

    def folders(self, folder: str) -> list[str]:
        """The folders with listed objects, or those in a folder that is not listed."""
        if not f"{folder}/".startswith(self._folders):
            return super().folders(folder)
        parts = [key.removeprefix(f"{folder}/").partition("/") for key in self._keys_below(folder)]
        return sorted({name for name, separator, _ in parts if separator})

    def _keys_below(self, folder: str) -> list[str]:
        """The listed keys below a folder, in order; the character 0 follows the slash."""
        return self._keys[bisect_left(self._keys, f"{folder}/") : bisect_left(self._keys, f"{folder}0")]


def _cached(path: Path) -> dict[str, _Read]:
    with suppress(OSError, msgspec.MsgspecError):
        return _DECODER.decode(path.read_bytes())
    return {}
