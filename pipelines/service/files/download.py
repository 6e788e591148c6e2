"""Downloads one file from the address that the library names, hashes it on the way and bounds its size (I12, I13).

A storage service never gets a sign-in (I2). A request to the library's own host is charged to the budget; below its `/api/` it is signed
in. Each redirect is checked anew.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

import httpx

from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock
from pipelines.service.files.storage_client import (
    HEADERS,
    StorageClient,
    UnsafeAddressError,
    file_retries,
    origin_text,
    s3_error,
)
from pipelines.service.http.failures import is_permanent, is_temporary, status_line, transport_error_text
from pipelines.service.http.retries import FailedTryError
from pipelines.service.http.retry_after import retry_after
from pipelines.service.http.transport import climbs, path_of
from pipelines.service.http.urls import url_of
from pipelines.service.redaction import outside_text

MAX_REDIRECTS = 5
MAX_BYTES = 16 * 1024**3
"""Bytes of a file whose size the library does not state."""

STALL_SECONDS = 60.0
"""Seconds without a single byte."""

SLOWEST = 64 * 1024
"""Bytes in `STALL_SECONDS`: a storage service that sends a byte now and then must not delay a file for ever."""

EXPIRED = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
)
"""Statuses of an address that has expired, or whose file is gone."""


@dataclass(frozen=True)
class Received:
    """A whole file, as it was written."""

    sha256: str
    size: int
    etag: str | None
    remark: str | None = None
    """What a person must know of the bytes: that they are packed."""


@dataclass(frozen=True)
class Unchanged:
    """The storage service still has the content with the given ETag."""


@dataclass(frozen=True)
class Failed:
    """Why a download failed, without any secret. `temporary`: a later try may succeed. `expired`: another address may help."""

    problem: str
    temporary: bool = False
    expired: bool = False


DownloadResult = Received | Unchanged | Failed


class _TransferError(FailedTryError):
    """Carries a `Failed` out of a transfer."""

    def __init__(
        self, problem: str, *, temporary: bool = False, pause: float | None = None, expired: bool = False
    ) -> None:
        super().__init__(problem, may_pass=temporary, pause=pause)
        self.failed = Failed(problem, temporary, expired)


class Downloads:
    """Downloads files that a library names. Safe to use from several threads; `close` ends running downloads.

    `client`: of the library, for files on its own host.
    """

    def __init__(self, base_url: str, *, client: LibraryClient, clock: Clock) -> None:
        base = httpx.URL(base_url)
        self._storages = StorageClient(base_url, client)
        self._api = f"{path_of(base).rstrip('/')}/api/"
        self._clock = clock

    def fetch(self, address: str, into: BinaryIO, *, size: int | None, etag: str | None = None) -> DownloadResult:
        """Write the file at `address` into `into`, from its beginning.

        `size` is the library's figure; `etag` belongs to content that we have.

        Tries temporary failures again. Raises disk errors, and those errors of the library's client that are not about this file.
        """
        try:
            return file_retries(self._clock)(self._try_once, address, into, size, etag)
        except _TransferError as error:
            return error.failed

    def close(self) -> None:
        """Close all connections to storage services, and wake every thread that waits for one of them."""
        self._storages.close()

    def _try_once(self, address: str, into: BinaryIO, size: int | None, etag: str | None) -> DownloadResult:
        into.seek(0)
        into.truncate()
        try:
            with closing(self._open(address, etag)) as response:
                if response.status_code == HTTPStatus.NOT_MODIFIED and etag is not None:
                    return Unchanged()
                self._check(response)
                return self._receive(response, into, size)
        except httpx.InvalidURL:
            raise _TransferError("the library names an invalid address") from None
        except UnsafeAddressError as error:
            raise _TransferError(str(error)) from None
        except httpx.TransportError as error:
            raise _TransferError(
                f"{origin_text(address)}: {transport_error_text(error)}", temporary=not is_permanent(error)
            ) from None

    def _open(self, address: str, etag: str | None) -> httpx.Response:
        """Return the first response that is no redirect."""
        url = url_of(address)
        for hop in range(MAX_REDIRECTS + 1):
            response = self._send(url, {"if-none-match": etag} if etag else {}, redirected=hop > 0)
            if not response.has_redirect_location:
                return response
            response.close()
            url = url_of(url.join(response.headers["location"]))
        raise _TransferError(f"{origin_text(address)} redirects more than {MAX_REDIRECTS} times")

    def _send(self, url: httpx.URL, headers: dict[str, str], *, redirected: bool) -> httpx.Response:
        """Send one request, with a sign-in only where its address allows that. A redirect never makes a request signed in."""
        is_api = self._storages.is_own_host(url) and path_of(url).startswith(self._api) and not climbs(path_of(url))
        request = httpx.Request("GET", url, headers={**HEADERS, **headers})
        return self._storages.send(request, seconds=STALL_SECONDS, signed_in=is_api and not redirected)

    def _check(self, response: httpx.Response) -> None:
        if response.status_code == HTTPStatus.OK:
            return
        status, asked = response.status_code, retry_after(response, self._clock.now())
        problem = f"{origin_text(response.request.url)} answered {status_line(response)}{_s3_text(response)}"
        raise _TransferError(problem, temporary=is_temporary(status), pause=asked, expired=status in EXPIRED)

    def _receive(self, response: httpx.Response, into: BinaryIO, size: int | None) -> Received:
        """Write and hash the body; stop as soon as it cannot be the file any more."""
        host, announced, etag = origin_text(response.request.url), _length(response), _etag(response)
        said = re.split(r"[\s,]+", response.headers.get("content-encoding", "").lower())
        codings = [coding for coding in said if coding in _CODINGS]
        chunks = self._in_time(response.iter_raw())
        if codings:
            # packed bytes may have no content at all, without an end (I13); of unknown ones the library's size says nothing
            most = MAX_BYTES if size is None or not _GZIP_NAMES.issuperset(codings) else 2 * size + _STEP
            sha256, received = _written(chunks, into, most, f"{host} sends more bytes than there should be")
            return _unpacked(Received(sha256, received, etag), into, codings, host, size)
        if announced is not None and size is not None and announced != size:
            raise _TransferError(f"{host} has {announced:,} bytes; the library says {size:,}")
        limit = f"at most {MAX_BYTES:,} are taken" if size is None else f"the library says {size:,}"
        too_many = f"{host} sends more bytes than there should be; {limit}"
        sha256, received = _written(chunks, into, MAX_BYTES if size is None else size, too_many)
        _check_size(host, received, size, temporary=announced is None)
        return Received(sha256, received, etag)

    def _in_time(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the chunks while they bring `SLOWEST` bytes in every `STALL_SECONDS`."""
        until, brought = self._clock.monotonic() + STALL_SECONDS, 0
        for chunk in chunks:
            yield chunk
            brought += len(chunk)
            if (now := self._clock.monotonic()) > until:
                if brought < SLOWEST:
                    raise httpx.ReadTimeout(f"{brought:,} bytes in {STALL_SECONDS:.0f} s")
                until, brought = now + STALL_SECONDS, 0


_GZIP_NAMES = frozenset({"gzip", "x-gzip"})
_CODINGS = _GZIP_NAMES | {"deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"}
"""IANA's content codings. Gzip alone is unpacked: it is what people pack files with before they upload them, and its check sum proves them.

What is none of them changes no bytes of a file: storages repeat what an upload said of itself (aws-chunked), a charset or base64.
"""

_GZIP = b"\x1f\x8b"
"""The beginning of its files."""

MOST_PACKED = 20
"""How many times as large as its packed bytes a file may be, if the library says that it is smaller (I13)."""

_STEP = 1024 * 1024
"""Bytes that are unpacked at a time, however well they were packed (I13)."""


def _check_size(host: str, received: int, size: int | None, *, temporary: bool = False) -> None:
    """`temporary`: there was no Content-Length, so that a premature end looks like any other end."""
    if size not in (None, received):
        raise _TransferError(f"{host} sent {received:,} bytes; the library says {size:,}", temporary=temporary)


def _written(chunks: Iterator[bytes], into: BinaryIO, most: int, too_many: str) -> tuple[str, int]:
    """Write chunks; returns their SHA-256 and size. Raises `_TransferError` with this text for more than `most` bytes."""
    digest, received = hashlib.sha256(), 0
    for chunk in chunks:
        received += len(chunk)
        if received > most:
            raise _TransferError(too_many)
        into.write(chunk)
        digest.update(chunk)
    return digest.hexdigest(), received


def _unpacked(sent: Received, into: BinaryIO, codings: Sequence[str], host: str, size: int | None) -> Received:
    """Unpack a file that was received packed (RFC 9110, 8.4) where that fits the library's size, or where nothing contradicts.

    Else it stays as it was sent, which is said. Some storages pack although the request did not allow that, or only say so. `into`: the
    file, which is written anew. Raises `_TransferError` for one that is perhaps not whole.
    """
    names = outside_text(", ".join(codings), 40)
    kept = replace(sent, remark=f"Kept as {host} sends it: packed ({names}).")
    if not _GZIP_NAMES.issuperset(codings) or len(codings) > 1:
        return kept
    into.seek(0)
    if into.read(2) != _GZIP:  # it only says that it is packed
        _check_size(host, sent.size, size)
        return sent
    if sent.size == size:
        return kept
    into.seek(0)
    folder = Path(into.name).parent if isinstance(getattr(into, "name", None), str) else None
    with tempfile.TemporaryFile(dir=folder) as content:
        chunks = iter(partial(gzip.GzipFile(fileobj=into).read, _STEP), b"")
        most = MAX_BYTES if size is None else max(2 * size, MOST_PACKED * sent.size)
        unpacked, what = -1, "more than any file of this size"
        try:
            sha256, unpacked = _written(chunks, content, most, what)
            what = f"{unpacked:,} bytes"
        except _TransferError:
            if size is None:
                raise
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            why = "its end is missing" if isinstance(error, EOFError) else "it cannot be unpacked"
            problem = f"{host} sends the file packed ({names}), and {why}"
            raise _TransferError(problem, temporary=isinstance(error, EOFError)) from None
        if size not in (None, unpacked):
            remark = f"{host} sends it packed ({names}), and kept so: unpacked it has {what}, and the library says {size:,} bytes."
            return replace(kept, remark=remark)
        into.seek(0)
        into.truncate()
        content.seek(0)
        shutil.copyfileobj(content, into, _STEP)
    return replace(sent, sha256=sha256, size=unpacked)


def _length(response: httpx.Response) -> int | None:
    text = response.headers.get("content-length", "")
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _etag(response: httpx.Response) -> str | None:
    """Returns the ETag if it can be sent back."""
    text = response.headers.get("etag", "")
    return text if re.fullmatch(r'(W/)?"[\x21\x23-\x7e]{0,200}"', text) else None


def _s3_text(response: httpx.Response) -> str:
    """Returns the storage service's own error as ` (AccessDenied: Request has expired)`."""
    text = ": ".join(filter(None, s3_error(response)))
    return f" ({outside_text(text)})" if text else ""
