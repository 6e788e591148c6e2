"""Objects in a bucket of S3, of what speaks like S3, of Google or of Azure.

Who may use it, the environment says, in the variables that the tools of these services use. A bucket renames nothing: what makes the
objects of a snapshot appear and disappear as a whole is in `uploads`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import duckdb
import obstore
from obstore.store import from_url

from pipelines.errors import ConfigurationError
from pipelines.settings.addresses import is_loopback
from pipelines.store.objects import multipart_uploads
from pipelines.store.objects.bucket_errors import bucket_errors
from pipelines.store.objects.objects import ObjectInfo, checked

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore  # names for type checkers only

PART = 8 * 1024 * 1024
"""Bytes. A larger file is sent in parts of this size."""

MOST_PARTS = 9_000
"""S3 takes 10,000."""

AHEAD = 1024 * 1024
"""Bytes that a reader gets with each small read."""

AT_ONCE = 16
"""Small objects that are read side by side: one takes tens of milliseconds."""

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables that name another service than Amazon's, the strongest first."""

_PATIENCE = timedelta(seconds=60)
RETRIES = 6


class Bucket:
    """The objects below a prefix of a bucket. `owner` tells who works on what is unfinished: one folder of work on one machine."""

    def __init__(self, store: ObjectStore, address: str, owner: Callable[[], str]) -> None:
        self._store = store
        self.address = address
        self._owner = owner

    def address_of(self, key: str) -> str:
        """`s3://bucket/prefix/key`."""
        return f"{self.address}/{checked(key)}"

    def put(self, key: str, content: bytes) -> bool:
        """The store itself refuses a key that is taken."""
        with bucket_errors("write", self.address_of(key)):
            try:
                obstore.put(self._store, key, content, mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def put_file(self, key: str, path: Path) -> bool:
        """A small file like any content; a large one in parts, after a look whether the key is free."""
        size = path.stat().st_size
        if size <= PART:
            return self.put(key, path.read_bytes())
        if self.size(key) is not None:
            return False
        self._put_parts(key, path)
        return True

    def _put_parts(self, key: str, path: Path) -> None:
        with bucket_errors("write", self.address_of(key)):
            part = max(PART, -(-path.stat().st_size // MOST_PARTS))
            obstore.put(self._store, key, path, use_multipart=True, chunk_size=part, max_concurrency=4)

    def replace(self, key: str, content: bytes) -> None:
        """One put."""
        with bucket_errors("write", self.address_of(key)):
            obstore.put(self._store, key, content)

    def replace_file(self, key: str, path: Path) -> None:
        """One put, or one upload in parts, which takes the old one's place when all of them are there."""
        if path.stat().st_size <= PART:
            self.replace(key, path.read_bytes())
        else:
            self._put_parts(key, path)

    def read(self, key: str) -> bytes:
        """One get."""
        with bucket_errors("read", self.address_of(key)):
            return bytes(obstore.get(self._store, key).bytes())

    def read_all(self, keys: Iterable[str]) -> Iterator[bytes | None]:
        """Many at once."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(self._read_if_there, keys)

    def open(self, key: str) -> io.BufferedReader:
        """Reads ahead; who reads a part at a time gets it by one request."""
        size = self.size(key)
        if size is None:
            raise FileNotFoundError(self.address_of(key))
        return self.reader(key, size)

    def reader(self, key: str, size: int) -> io.BufferedReader:
        """A reader of an object whose size somebody has asked for."""
        return io.BufferedReader(_Ranges(self._store, key, self.address_of(key), size), AHEAD)

    def size(self, key: str) -> int | None:
        """As the store says."""
        with bucket_errors("look at", self.address_of(key)), suppress(FileNotFoundError):
            return obstore.head(self._store, key)["size"]
        return None

    def below(self, folder: str) -> Iterator[ObjectInfo]:
        """As the store lists them, which must be in order: who removes what others do not name relies on it."""
        with bucket_errors("list", self.address_of(folder)):
            last = b""
            for found in obstore.list(self._store, folder, chunk_size=1000):
                for one in found:
                    if (name := one["path"].encode()) <= last:
                        raise ConfigurationError(
                            f"{self.address}: this store does not list objects in the order of their names, which Bookferry relies on. "
                            "Use another kind of bucket."
                        )
                    last = name
                    yield ObjectInfo(one["path"], one["size"])

    def folders(self, folder: str) -> list[str]:
        """The common prefixes."""
        with bucket_errors("list", self.address_of(folder)):
            found = obstore.list_with_delimiter(self._store, folder)["common_prefixes"]
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def delete(self, key: str) -> None:
        """As the store does."""
        with bucket_errors("delete", self.address_of(key)), suppress(FileNotFoundError):
            obstore.delete(self._store, key)

    def publish(self, folder: Path, key: str, files: Sequence[str]) -> None:
        """Claimed, uploaded, looked at, then the last file."""
        multipart_uploads.publish(self, self._owner(), folder, key, files)

    def hide(self, key: str, last: str) -> None:
        """The last file goes first."""
        multipart_uploads.hide(self, self._owner(), key, last)

    def clear(self, folder: str) -> None:
        """What this machine has left unfinished."""
        multipart_uploads.clear(self, self._owner(), folder)

    def unfinished(self, folder: str) -> set[str]:
        """What is claimed, and lacks its last file."""
        return multipart_uploads.unfinished(self, folder)

    def attach(self, database: duckdb.DuckDBPyConnection) -> None:
        """DuckDB reads through us, so that it needs no extension and no credentials of its own."""
        from pipelines.store.objects.bucket_files import BucketFiles  # noqa: PLC0415  fsspec costs a tenth of a second

        database.register_filesystem(BucketFiles(self))

    def _read_if_there(self, key: str) -> bytes | None:
        with suppress(FileNotFoundError):
            return self.read(key)
        return None


class _Ranges(io.RawIOBase):
    """An object as a file."""

    def __init__(self, store: ObjectStore, key: str, address: str, size: int) -> None:
        self._store = store
        self._key = key
        self._address = address
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # the reader around it gives nothing else
        length = min(len(buffer), self._size - self._place)
        if length <= 0:
            return 0
        with bucket_errors("read", self._address):
            found = obstore.get_range(self._store, self._key, start=self._place, length=length)
        buffer[: len(found)] = memoryview(found)
        self._place += len(found)
        return len(found)


def _host(endpoint: str) -> str:
    return urlsplit(endpoint).hostname or ""


def open_bucket(
    address: str, owner: Callable[[], str], environ: Mapping[str, str], *, retries: int = RETRIES
) -> Bucket:
    """The bucket of an address that the settings have checked. Asks it nothing yet."""
    client: ClientConfig = {"connect_timeout": "10s", "timeout": "120s", "allow_http": False}
    endpoint = next((environ[name] for name in ENDPOINTS if environ.get(name)), "")
    if address.startswith("s3:") and urlsplit(endpoint).scheme == "http":
        if not is_loopback(_host(endpoint)):
            raise ConfigurationError(
                f"{address}: the endpoint that the environment names ({_host(endpoint)}) is http, so that records could be read on "
                "the way. Use its https address; http is for this machine only."
            )
        client["allow_http"] = True
    with bucket_errors("open", address):
        store = from_url(
            address,
            client_options=client,
            retry_config={"max_retries": retries, "retry_timeout": _PATIENCE},
        )
    return Bucket(store, address, owner)
