"""Objects in a bucket of S3, of an S3-compatible service, of Google or of Azure.

Credentials come from the environment, in the variables that the tools of these services use. A bucket has no rename: `claims` makes the
objects of a snapshot appear and disappear together.
"""

from __future__ import annotations

import io
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import obstore
from obstore.store import from_url

from pipelines.certificates import CERTIFICATES, check_certificates
from pipelines.errors import ConfigurationError, TemporaryError
from pipelines.settings.addresses import is_loopback
from pipelines.state.store import Ticking
from pipelines.store.objects import claims
from pipelines.store.objects.bucket_errors import UnreachableError, bucket_errors, opening_error
from pipelines.store.objects.objects import ObjectInfo, checked_key

if TYPE_CHECKING:
    import duckdb
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, ObjectStore  # names for type checkers only

PART_BYTES = 8 * 1024 * 1024
"""A file larger than this is uploaded in parts of this size."""

MOST_PARTS = 9_000
"""Parts per upload at most; S3 allows 10,000."""

READ_AHEAD_BYTES = 1024 * 1024
"""Bytes that a reader fetches with each small read."""

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables with the endpoint of another service than Amazon's; the first one that is set counts."""

_RETRY_TIME = timedelta(seconds=60)
RETRIES = 6
"""Tries of obstore for each request within the first seconds, which save the parts of a large upload."""

PATIENCE_SECONDS = 150.0
"""For how long an operation is tried again while the service fails: a restart of its gateway takes a minute."""

LONGEST_PAUSE = 5.0

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Bucket:
    """The objects below a prefix of a bucket. `owner` returns to whom unfinished work belongs, for claims.

    Every operation outlasts a minute in which the service fails. `once`: the same store without obstore's own tries.
    """

    def __init__(
        self,
        store: ObjectStore,
        address: str,
        owner: Callable[[], str],
        *,
        once: ObjectStore | None = None,
        clock: Ticking = time,
    ) -> None:
        self._store = store
        self._once = once or store
        self.address = address
        self._owner = owner
        self._clock = clock
        self._answered = False
        self._warning = threading.Lock()
        self._warned_until = -math.inf

    def address_of(self, key: str) -> str:
        """`s3://bucket/prefix/key`."""
        return f"{self.address}/{checked_key(key)}"

    def put(self, key: str, content: bytes | Path) -> bool:
        """One conditional put: the store itself refuses a key that is taken. A large file is uploaded in parts, if the key is free.

        A try whose answer was lost may have taken the key. obstore, which tries again by itself, would not tell.
        """
        if isinstance(content, Path):
            if content.stat().st_size > PART_BYTES:
                if self.size(key) is not None:
                    return False
                self.replace(key, content)
                return True
            content = content.read_bytes()
        is_unclear = False

        def put() -> bool:
            nonlocal is_unclear
            try:
                obstore.put(self._once, key, content, mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return is_unclear and self.read(key) == content
            except obstore.exceptions.BaseError:
                is_unclear = True
                raise
            return True

        return self.lasting("write", key, put)

    def replace(self, key: str, content: bytes | Path) -> None:
        """One put, or one upload in parts, which replaces the old object when all parts are there."""
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        part = max(PART_BYTES, -(-size // MOST_PARTS))
        self.lasting("write", key, lambda: obstore.put(self._store, key, content, chunk_size=part, max_concurrency=4))

    def read(self, key: str) -> bytes:
        """One get."""
        return self.lasting("read", key, lambda: bytes(obstore.get(self._store, key).bytes()))

    def open(self, key: str) -> io.BufferedReader:
        """A reader that reads ahead, one request per piece."""
        size = self.size(key)
        if size is None:
            raise FileNotFoundError(self.address_of(key))
        return io.BufferedReader(self.reader(key, size), READ_AHEAD_BYTES)

    def reader(self, key: str, size: int) -> io.RawIOBase:
        """A reader of an object of this size, in which each thread has a position of its own."""
        return _RangeReader(self.read_range, key, size)

    def size(self, key: str) -> int | None:
        """One head request."""
        with suppress(FileNotFoundError):
            return self.lasting("look at", key, lambda: obstore.head(self._store, key)["size"])
        return None

    def read_range(self, key: str, start: int, length: int) -> obstore.Bytes:
        """A part of an object."""
        return self.lasting("read", key, lambda: obstore.get_range(self._store, key, start=start, length=length))

    def below(self, folder: str) -> Iterator[ObjectInfo]:
        """The store's listing."""
        return (ObjectInfo(entry["path"], entry["size"]) for entry in self.listing(folder))

    def listing(self, folder: str) -> Iterator[ObjectMeta]:
        """The entries of the store. They must be sorted, because callers that remove unused objects compare them with sorted names."""
        last = ""
        pages: Iterator[Sequence[ObjectMeta]] | None = None

        def next_page() -> Sequence[ObjectMeta] | None:
            nonlocal pages
            pages = pages or obstore.list(self._store, folder, offset=last or None, chunk_size=1000)
            try:
                return next(pages, None)
            except obstore.exceptions.BaseError:
                pages = None  # the next try goes on after the last name
                raise

        while (page := self.lasting("list", folder, next_page)) is not None:
            for entry in page:
                if entry["path"].encode() <= last.encode():
                    raise ConfigurationError(
                        f"{self.address}: this store does not list objects in the order of their names, which Bookferry relies on. "
                        "Use another kind of bucket."
                    )
                last = entry["path"]
                yield entry

    def folders(self, folder: str) -> list[str]:
        """The common prefixes of the listing."""
        prefixes = self.lasting(
            "list", folder, lambda: obstore.list_with_delimiter(self._store, folder)["common_prefixes"]
        )
        return sorted(name.rstrip("/").rpartition("/")[2] for name in prefixes)

    def delete(self, key: str) -> None:
        """One delete request."""
        with suppress(FileNotFoundError):
            self.lasting("delete", key, lambda: obstore.delete(self._store, key))

    def publish(self, folder: Path, key: str, files: Sequence[str]) -> None:
        """Claim the key, upload, compare the listing, then upload the manifest."""
        claims.publish(self, self._owner, folder, key, files)

    def hide(self, key: str) -> None:
        """Claim the key and delete the manifest."""
        claims.hide(self, self._owner, key)

    def clear(self, folder: str) -> None:
        """Remove this owner's unfinished work."""
        claims.clear(self, self._owner, folder)

    def unfinished(self, folder: str) -> set[str]:
        """The keys that are claimed and lack their manifest."""
        return claims.unfinished(self, folder)

    def attach(self, database: duckdb.DuckDBPyConnection) -> None:
        """Register a file system, so that DuckDB needs no extension and no credentials of its own."""
        from pipelines.store.objects.bucket_files import BucketFiles  # noqa: PLC0415  fsspec costs a tenth of a second

        database.register_filesystem(BucketFiles(self.address, self.size, self.reader))

    def lasting(self, trying: str, key: str, operation: Callable[[], T]) -> T:
        """The result of an operation, which is repeated while the service fails.

        A service from which no answer ever came has another address, perhaps: that is said at once.
        """
        ends, pause = math.inf, 0.1
        while True:
            try:
                with bucket_errors(trying, self.address_of(key)):
                    result = operation()
            except TemporaryError as error:
                now = self._clock.monotonic()
                ends = min(ends, now + PATIENCE_SECONDS)
                self._answered = self._answered or not isinstance(error, UnreachableError)
                if now >= ends or not self._answered:
                    raise
                self._warn(error, now)
                self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except FileNotFoundError:
                self._answered = True
                raise
            else:
                self._answered = True
                return result

    def _warn(self, error: TemporaryError, now: float) -> None:
        """Say what is waited for, once for all operations of that time."""
        with self._warning:
            is_known = now < self._warned_until
            self._warned_until = max(self._warned_until, now + PATIENCE_SECONDS)
        if not is_known:
            problem = str(error).partition("). ")[0]
            _log.warning("%s). What fails is tried again for %.1f minutes.", problem, PATIENCE_SECONDS / 60)


class _RangeReader(io.RawIOBase):
    """Reads an object by ranges, as a file. Each thread has a position of its own.

    DuckDB's threads seek and read in one open file by turns: with one position for all, a thread reads where another has just sought.
    """

    def __init__(self, read: Callable[[str, int, int], obstore.Bytes], key: str, size: int) -> None:
        self._read = read
        self._key = key
        self._size = size
        self._of_thread = threading.local()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return getattr(self._of_thread, "position", 0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}[whence]
        self._of_thread.position = position
        return position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # its callers pass nothing else
        position = self.tell()
        length = min(len(buffer), self._size - position)
        if length <= 0:
            return 0
        content = self._read(self._key, position, length)
        buffer[: len(content)] = memoryview(content)
        self._of_thread.position = position + len(content)
        return len(content)


def open_bucket(
    address: str,
    owner: Callable[[], str],
    environ: Mapping[str, str],
    *,
    retries: int = RETRIES,
    clock: Ticking = time,
) -> Bucket:
    """Open the bucket of an address that the settings have checked. No request is sent yet."""
    client: ClientConfig = {"connect_timeout": "10s", "timeout": "120s", "allow_http": False}
    endpoint = urlsplit(next((environ[name] for name in ENDPOINTS if environ.get(name)), ""))
    if address.startswith("s3:") and endpoint.scheme == "http":
        host = endpoint.hostname or ""
        if not is_loopback(host):
            raise ConfigurationError(
                f"{address}: the endpoint that the environment names ({host}) is http, so that records could be read on "
                "the way. Use its https address; http is for this machine only."
            )
        client["allow_http"] = True
    else:
        check_certificates(*(environ.get(name, "") for name in CERTIFICATES))
        empty = [name for name in CERTIFICATES if environ.get(name) == ""]
        if empty and not any(map(environ.get, CERTIFICATES)):  # obstore reads them itself, and would trust no one
            raise ConfigurationError(
                f"The environment variable {empty[0]} is empty. Unset it to trust the usual authorities."
            )

    def store(tries: int) -> ObjectStore:
        try:
            return from_url(
                address, client_options=client, retry_config={"max_retries": tries, "retry_timeout": _RETRY_TIME}
            )
        except obstore.exceptions.BaseError as error:
            raise opening_error(error, address) from None

    return Bucket(store(retries), address, owner, once=store(0), clock=clock)
