"""The small objects of a store as of one listing. What this machine has read before is not read again while its ETag is the same.

For `status`: forty libraries have a thousand manifests, which never change, and as many results of verifications. The listing says what is
there now, so that a snapshot that was removed, or whose manifest was damaged since, is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec
import obstore
from obstore.store import MemoryStore

from pipelines.errors import BookferryError
from pipelines.file_access import make_folder
from pipelines.store.durable import write_atomically
from pipelines.store.objects.buckets import Bucket
from pipelines.store.objects.objects import PARALLEL_READS, read_all

CACHE = "objects.cache"
"""The file in the work folder with what was read."""

_DECODER = msgspec.msgpack.Decoder(dict[str, tuple[str, bytes]])
"""Key → ETag and content of an object that was read."""


def as_listed(bucket: Bucket, folders: Sequence[str], work: Path) -> Bucket:
    """The JSON objects of a bucket below some folders, and nothing else, as they are now. `work`: the folder of the cache."""
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        pages = pool.map(lambda folder: [*bucket.listing(folder)], folders)
        listed = [entry for page in pages for entry in page if entry["path"].endswith(".json")]
    tags = {entry["path"]: entry["e_tag"] or "" for entry in listed}
    before = _cached(work / CACHE)
    now = {key: before[key] for key, tag in tags.items() if key in before and before[key][0] == tag}
    new = [key for key in tags if key not in now]
    contents = zip(new, read_all(bucket, new), strict=True)
    now |= {key: (tags[key], content) for key, content in contents if content is not None}
    if now != before:
        with suppress(BookferryError, OSError):  # whoever looks may not be allowed to write
            make_folder(work)
            write_atomically(work / CACHE, msgspec.msgpack.encode(now))
    store = MemoryStore()
    for key, (_, content) in now.items():
        obstore.put(store, key, content)
    return Bucket(store, bucket.address, lambda: "")


def _cached(path: Path) -> dict[str, tuple[str, bytes]]:
    with suppress(OSError, msgspec.MsgspecError):
        return _DECODER.decode(path.read_bytes())
    return {}
