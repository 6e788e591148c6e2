"""One file over HTTP: from the address that the library names to a file of ours, hashed on the way and of bounded size (I12, I13).

Storage never sees a sign-in (I2, trap A1; storages.py). What is on the library's own host is charged to the budget; below its `/api/` it
goes signed in, through the client's rings. Each redirect is judged anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from typing import BinaryIO

import httpx

from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock
from pipelines.service.files.storage_client import (
    HEADERS,
    MAX_PAUSE,
    TRIES,
    StorageClient,
    UnsafeAddressError,
    origin_text,
    s3_error,
)
from pipelines.service.http.failures import is_permanent, is_temporary, status_line, transport_error_text
from pipelines.service.http.retries import backoff
from pipelines.service.http.retry_after import retry_after
from pipelines.service.http.transport import climbs, path_of
from pipelines.service.redaction import outside_text

MAX_REDIRECTS = 5
MAX_BYTES = 16 * 1024**3
"""Of a file whose size the library does not tell."""

STALL_SECONDS = 60.0
"""Without a single byte."""

SLOWEST = 64 * 1024
"""Bytes in `STALL_SECONDS`: a storage that sends a byte now and then must not hold a file for ever."""

EXPIRED = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
)
"""What storages answer to an address that has expired, or whose file is gone."""


@dataclass(frozen=True)
class Received:
    """A whole file, as it was written."""

    sha256: str
    size: int
    etag: str | None


@dataclass(frozen=True)
class Unchanged:
    """The storage says that the content is the one whose ETag was named."""


@dataclass(frozen=True)
class Failed:
    """What went wrong, without any secret. `temporary`: it may be over the next time. `expired`: another address may help."""

    problem: str
    temporary: bool = False
    expired: bool = False


DownloadResult = Received | Unchanged | Failed


class _TransferError(Exception):
    """Carries a `Failed` out of the middle of a transfer."""

    def __init__(
        self, problem: str, *, temporary: bool = False, pause: float | None = None, expired: bool = False
    ) -> None:
        super().__init__(problem)
        self.failed = Failed(problem, temporary, expired)
        self.pause = pause


class Downloads:
    """Fetches files that a library names. Safe to use from several threads; `close` ends what is under way.

    `client` opens the library's client when a file turns out to be on its host.
    """

    def __init__(self, base_url: str, *, client: Callable[[], LibraryClient], clock: Clock) -> None:
        base = httpx.URL(base_url)
        self._storages = StorageClient(base_url)
        self._api = f"{path_of(base).rstrip('/')}/api/"
        self._client = client
        self._clock = clock

    def fetch(self, address: str, into: BinaryIO, *, size: int | None, etag: str | None = None) -> DownloadResult:
        """Write the file at `address` into `into`, from its beginning. `size` is what the library says; `etag` that of content we have.

        Tries again what may pass. Raises what the disk raises, and of the library's client what is no matter of this file.
        """
        tried = 0
        while True:
            into.seek(0)
            into.truncate()
            try:
                return self._try_once(address, into, size, etag)
            except _TransferError as error:
                tried += 1
                if not error.failed.temporary or tried == TRIES or (error.pause or 0.0) > MAX_PAUSE:
                    return error.failed
                self._clock.sleep(error.pause or backoff(tried))

    def close(self) -> None:
        """Close all connections to storages, and wake whoever waits for one of them."""
        self._storages.close()

    def _try_once(self, address: str, into: BinaryIO, size: int | None, etag: str | None) -> DownloadResult:
        try:
            with closing(self._open(address, etag)) as response:
                if response.status_code == HTTPStatus.NOT_MODIFIED and etag is not None:
                    return Unchanged()
                self._check(response)
                return self._receive(response, into, size)
        except httpx.InvalidURL:
            raise _TransferError("the library names an address that is none") from None
        except UnsafeAddressError as error:
            raise _TransferError(str(error)) from None
        except httpx.TransportError as error:
            raise _TransferError(
                f"{origin_text(address)}: {transport_error_text(error)}", temporary=not is_permanent(error)
            ) from None

    def _open(self, address: str, etag: str | None) -> httpx.Response:
        """The first answer that is no redirect."""
        url = httpx.URL(address)
        for hop in range(MAX_REDIRECTS + 1):
            response = self._send(url, {"if-none-match": etag} if etag else {}, redirected=hop > 0)
            if not response.has_redirect_location:
                return response
            response.close()
            url = url.join(response.headers["location"])
        raise _TransferError(f"{origin_text(address)} redirects more than {MAX_REDIRECTS} times")

    def _send(self, url: httpx.URL, headers: dict[str, str], *, redirected: bool) -> httpx.Response:
        """One request by the way that is right for its address. Nobody else's redirect makes a request of ours signed in."""
        self._storages.check(url)
        if self._storages.is_own_host(url):
            signed_in = path_of(url).startswith(self._api) and not climbs(path_of(url)) and not redirected
            return self._client().stream(url, {**HEADERS, **headers}, signed_in=signed_in)
        return self._storages.send(httpx.Request("GET", url, headers={**HEADERS, **headers}), seconds=STALL_SECONDS)

    def _check(self, response: httpx.Response) -> None:
        if response.status_code == HTTPStatus.OK:
            return
        status, asked = response.status_code, retry_after(response, self._clock.now())
        problem = f"{origin_text(response.request.url)} answered {status_line(response)}{_s3_text(response)}"
        raise _TransferError(problem, temporary=is_temporary(status), pause=asked, expired=status in EXPIRED)

    def _receive(self, response: httpx.Response, into: BinaryIO, size: int | None) -> Received:
        """Write and hash the body; stop as soon as it cannot be the file any more."""
        named, told = origin_text(response.request.url), _length(response)
        if told is not None and size is not None and told != size:
            raise _TransferError(f"{named} has {told:,} bytes; the library says {size:,}")
        digest, received = hashlib.sha256(), 0
        for chunk in self._in_time(response.iter_raw()):
            received += len(chunk)
            if received > (MAX_BYTES if size is None else size):
                limit = f"at most {MAX_BYTES:,} are taken" if size is None else f"the library says {size:,}"
                raise _TransferError(f"{named} sends more bytes than there should be; {limit}")
            into.write(chunk)
            digest.update(chunk)
        if size not in (None, received):
            # without a Content-Length, an end that came too soon looks like any other
            raise _TransferError(f"{named} sent {received:,} bytes; the library says {size:,}", temporary=told is None)
        if size is None and response.headers.get("content-encoding", "identity").lower() != "identity":
            raise _TransferError(f"{named} sends the file packed, although nobody asked for that")
        return Received(digest.hexdigest(), received, _etag(response))

    def _in_time(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks, while they bring `SLOWEST` bytes in every `STALL_SECONDS`."""
        until, brought = self._clock.monotonic() + STALL_SECONDS, 0
        for chunk in chunks:
            yield chunk
            brought += len(chunk)
            if (now := self._clock.monotonic()) > until:
                if brought < SLOWEST:
                    raise httpx.ReadTimeout(f"{brought:,} bytes in {STALL_SECONDS:.0f} s")
                until, brought = now + STALL_SECONDS, 0


def _length(response: httpx.Response) -> int | None:
    text = response.headers.get("content-length", "")
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _etag(response: httpx.Response) -> str | None:
    """The ETag, if it is one that can be sent back."""
    text = response.headers.get("etag", "")
    return text if re.fullmatch(r'(W/)?"[\x21\x23-\x7e]{0,200}"', text) else None


def _s3_text(response: httpx.Response) -> str:
    """The storage's own words, as ` (AccessDenied: Request has expired)`."""
    told = ": ".join(filter(None, s3_error(response)))
    return f" ({outside_text(told)})" if told else ""
