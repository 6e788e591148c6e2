"""The small objects of a store as of one listing. What this machine has read before is not read again while its ETag is the same.

For `status`: forty libraries have a thousand manifests, which never change, and as many results of verifications. The listing says what is
there now, so that a snapshot that was removed, or whose manifest was damaged since, is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from pipelines.errors import BookferryError
from pipelines.file_access import make_folder
from pipelines.store.durable import write_atomically
from pipelines.store.objects.buckets import Bucket
from pipelines.store.objects.objects import PARALLEL_READS, ObjectInfo, read_all

CACHE = "objects.cache"
"""The file in the work folder with what was read."""

_DECODER = msgspec.msgpack.Decoder(dict[str, tuple[str, bytes]])
"""Key → ETag and content of an object that was read."""


class ListedBucket(Bucket):
    """A bucket whose JSON objects below some folders are as they were at its making; everything else is as it is."""

    def __init__(self, bucket: Bucket, folders: Sequence[str], work: Path) -> None:
        self.__dict__.update(bucket.__dict__)
        self._folders = tuple(f"{folder}/" for folder in folders)
        with ThreadPoolExecutor(PARALLEL_READS) as pool:
            pages = pool.map(lambda folder: [*self._list(folder)], folders)
            listed = [entry for page in pages for entry in page if entry["path"].endswith(".json")]
        self._sizes = {entry["path"]: entry["size"] for entry in listed}
        tags = {entry["path"]: entry["e_tag"] or "" for entry in listed}
        before = _cached(work / CACHE)
        now = {key: before[key] for key, tag in tags.items() if key in before and before[key][0] == tag}
        new = [key for key in tags if key not in now]
        contents = zip(new, read_all(bucket, new), strict=True)
        now |= {key: (tags[key], content) for key, content in contents if content is not None}
        self._contents = {key: content for key, (_, content) in now.items()}
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

    def below(self, folder: str) -> Iterator[ObjectInfo]:
        """The listed objects below a folder, or those of a folder that is not listed."""
        if not f"{folder}/".startswith(self._folders):
            return super().below(folder)
        return (ObjectInfo(key, size) for key, size in self._sizes.items() if key.startswith(f"{folder}/"))

    def folders(self, folder: str) -> list[str]:
        """The folders with listed objects, or those in a folder that is not listed."""
        if not f"{folder}/".startswith(self._folders):
            return super().folders(folder)
        parts = [entry.key.removeprefix(f"{folder}/").partition("/") for entry in self.below(folder)]
        return sorted({name for name, separator, _ in parts if separator})


def _cached(path: Path) -> dict[str, tuple[str, bytes]]:
    with suppress(OSError, msgspec.MsgspecError):
        return _DECODER.decode(path.read_bytes())
    return {}
