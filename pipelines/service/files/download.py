"""Downloads one file from the address that the library names, hashes it on the way and bounds its size (I12, I13).

A storage service never gets a sign-in (I2). A request to the library's own host is charged to the budget; below its `/api/` it is signed
in. Each redirect is checked anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain
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
from pipelines.service.http.bodies import unzipped
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


class DownloadError(FailedTryError):
    """Why a file was not received, without any secret. `may_pass`: a later try may succeed. `expired`: another address may help."""

    def __init__(
        self, problem: str, *, may_pass: bool = False, pause: float | None = None, expired: bool = False
    ) -> None:
        super().__init__(problem, may_pass=may_pass, pause=pause)
        self.expired = expired


class Downloads:
    """Downloads files that a library names. Safe to use from several threads; `close` ends running downloads.

    `client`: of the library, for files on its own host.
    """

    def __init__(self, base_url: str, *, client: LibraryClient, clock: Clock) -> None:
        base = httpx.URL(base_url)
        self._storages = StorageClient(base_url, client)
        self._api = f"{path_of(base).rstrip('/')}/api/"
        self._clock = clock

    def fetch(self, address: str, into: BinaryIO, *, size: int | None, etag: str | None = None) -> Received | None:
        """Write the file at `address` into `into`, from its beginning.

        `size` is the library's figure; `etag` belongs to content that we have: `None` if the storage service still has that.

        Tries temporary failures again, and then raises `DownloadError`. Raises disk errors, and those errors of the library's client that
        are not about this file.
        """
        return file_retries(self._clock)(self._try_once, address, into, size, etag)

    def close(self) -> None:
        """Close all connections to storage services, and wake every thread that waits for one of them."""
        self._storages.close()

    def _try_once(self, address: str, into: BinaryIO, size: int | None, etag: str | None) -> Received | None:
        into.seek(0)
        into.truncate()
        try:
            with closing(self._open(address, etag)) as response:
                if response.status_code == HTTPStatus.NOT_MODIFIED and etag is not None:
                    return None
                self._check(response)
                return self._receive(response, into, size)
        except httpx.InvalidURL:
            raise DownloadError("the library names an invalid address") from None
        except UnsafeAddressError as error:
            raise DownloadError(str(error)) from None
        except httpx.TransportError as error:
            raise DownloadError(
                f"{origin_text(address)}: {transport_error_text(error)}", may_pass=not is_permanent(error)
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
        raise DownloadError(f"{origin_text(address)} redirects more than {MAX_REDIRECTS} times")

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
        raise DownloadError(problem, may_pass=is_temporary(status), pause=asked, expired=status in EXPIRED)

    def _receive(self, response: httpx.Response, into: BinaryIO, size: int | None) -> Received:
        """Write and hash the body; stop as soon as it cannot be the file any more.

        Some storages pack although the request did not allow that (RFC 9110, 8.4), or only say so. What gzip packed is unpacked, unless the
        library's size is that of the packed file. What was packed otherwise is kept so, and its size is not compared.
        """
        host, announced = origin_text(response.request.url), _length(response)
        chunks = self._in_time(response.iter_raw())
        beginning = next(chunks, b"")
        chunks, remark = chain([beginning], chunks), None
        said = re.split(r"[\s,]+", response.headers.get("content-encoding", "").lower())
        codings = [coding for coding in said if coding in _CODINGS]
        is_gzip = len(codings) == 1 and _GZIP_NAMES.issuperset(codings)
        if is_gzip and not beginning.startswith(_GZIP):
            codings = []  # it only says that it is packed
        if codings and is_gzip and (size is None or announced != size):
            chunks = unzipped(chunks)
        elif codings:
            remark = f"Kept as {host} sends it: packed ({outside_text(', '.join(codings), 40)})."
            size = size if is_gzip else None
        elif announced is not None and size not in (None, announced):
            raise DownloadError(f"{host} has {announced:,} bytes; the library says {size:,}")
        digest, received, most = hashlib.sha256(), 0, MAX_BYTES if size is None else size
        for chunk in chunks:
            received += len(chunk)
            if received > most:
                limit = f"at most {most:,} are taken" if size is None else f"the library says {size:,}"
                raise DownloadError(f"{host} sends more bytes than there should be; {limit}")
            into.write(chunk)
            digest.update(chunk)
        if size not in (None, received):  # without Content-Length, a premature end looks like any other end
            message = f"{host} sent {received:,} bytes; the library says {size:,}"
            raise DownloadError(message, may_pass=announced is None)
        return Received(digest.hexdigest(), received, _etag(response), remark)

    def _in_time(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the chunks while they bring `SLOWEST` bytes in every `STALL_SECONDS`, and `MAX_BYTES` at most."""
        until, brought, total = self._clock.monotonic() + STALL_SECONDS, 0, 0
        for chunk in chunks:
            yield chunk
            brought, total = brought + len(chunk), total + len(chunk)
            if total > MAX_BYTES:  # packed bytes may have no content at all, without an end (I13)
                raise DownloadError(f"more than {MAX_BYTES:,} bytes were sent")
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
