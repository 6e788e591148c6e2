"""Reads the body of one response: all of it or an error, of bounded size and in bounded time (I13)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from http import HTTPStatus
from io import BytesIO

import httpx
import msgspec

from pipelines.errors import ProtocolError
from pipelines.service.clock import Clock
from pipelines.service.http.envelope import as_plain_json
from pipelines.service.http.failures import GarbledBodyError, describe_request
from pipelines.service.redaction import outside_text

MAX_BODY = 64 * 1024 * 1024
"""Bytes of one API response, unpacked. A page of 50 records with long abstracts is under 1 MiB."""

MAX_SECONDS = 300.0
"""Seconds that one body may take: a service that sends a byte now and then would never run into a timeout."""

UNPACK_BYTES = 1024 * 1024
"""Bytes that are unpacked at a time: a body that is packed a thousandfold must not fill the memory before its size is checked."""


MAY_BE_EMPTY = frozenset({"POST", "PATCH", "DELETE"})
"""Methods whose response may have no body (service.md#not-shown)."""

MOST_BYTES = "most_bytes"
"""Request extension of a document that need not be JSON: the bytes of its body that are enough."""


_UNDONE = (b"content-encoding", b"content-length", b"transfer-encoding")
"""Headers that describe the body as it was sent, not as it is here."""


def whole_response(response: httpx.Response, request: httpx.Request, clock: Clock) -> httpx.Response:
    """Returns the response with its body in memory, as `read_body` reads it, and closes the connection's."""
    response.request = request
    try:
        body = read_body(response, clock)
    finally:
        response.close()
    return httpx.Response(
        response.status_code,
        headers=[(name, value) for name, value in response.headers.raw if name.lower() not in _UNDONE],
        content=body,
        request=request,
        extensions={"reason_phrase": response.reason_phrase.encode("ascii", errors="replace")},
    )


def read_body(response: httpx.Response, clock: Clock) -> bytes:
    """Returns the whole body, unpacked.

    A 200 with the content type JSON must be valid JSON. Raises `GarbledBodyError` and the errors of httpx for a broken connection, all of
    which may pass; `ProtocolError` for a body that no API sends.
    """
    body, size = BytesIO(), 0  # no list: it would take 40 bytes for a chunk of 2 bytes
    until = clock.monotonic() + MAX_SECONDS
    most = response.request.extensions.get(MOST_BYTES, MAX_BODY)
    for chunk in _unpacked(response):
        size += body.write(chunk)
        if size > most:
            what = "any page of records" if most == MAX_BODY else "this answer"
            raise ProtocolError(
                f"{describe_request(response.request)} answered with more than {most // 2**20} MiB, more than {what} needs. "
                "Reading stopped. "
                "Is base_url the library's API?"
            )
        if clock.monotonic() > until:
            raise httpx.ReadTimeout(f"{size:,} bytes in {MAX_SECONDS:.0f} s, and no end")
    whole = body.getvalue()
    is_api = response.status_code == HTTPStatus.OK and MOST_BYTES not in response.request.extensions
    is_json = is_api and "json" in response.headers.get("content-type", "json")
    if is_json and (whole or response.request.method not in MAY_BE_EMPTY):
        _check_json(response, whole)
    return whole


def _unpacked(response: httpx.Response) -> Iterator[bytes]:
    """Yields the body in small chunks. httpx would unpack a whole chunk at once, and as many layers as the service names."""
    if response.is_stream_consumed:  # a transport without a socket has read and unpacked it
        return iter([response.content])
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return response.iter_raw()
    if coding in ("gzip", "x-gzip"):
        return unzipped(response.iter_raw())
    raise ProtocolError(
        f"{describe_request(response.request)} answered packed as {outside_text(coding, 60)}, although only gzip was asked for."
    )


def unzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the content of gzip members, one after the other, in small chunks. Raises `GarbledBodyError` if their end is missing."""
    unpack, empty = _unzipper(), True
    try:
        for chunk in chunks:
            empty, rest = False, chunk
            while rest:
                if unpack.eof and not (rest := rest.lstrip(b"\0")):  # zeros may fill it up
                    break
                unpack = _unzipper() if unpack.eof else unpack
                yield unpack.decompress(rest, UNPACK_BYTES)
                rest = unpack.unconsumed_tail or unpack.unused_data
        yield unpack.flush()
    except zlib.error as error:
        raise GarbledBodyError(f"the packed body cannot be unpacked ({error})") from None
    if not unpack.eof and not empty:
        raise GarbledBodyError("the packed body ends too early")


def _unzipper() -> zlib._Decompress:
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


def _check_json(response: httpx.Response, body: bytes) -> None:
    """Raise an error for a body that is no JSON.

    JSON is UTF-8 (RFC 8259, 8.1). Other bytes were damaged on the way or at the service; after the last try the message names the page.
    """
    try:
        body.decode()  # msgspec does not check the bytes of a text that it only passes on
    except UnicodeDecodeError:
        raise GarbledBodyError(f"200, but the body of {len(body):,} bytes is not UTF-8, as JSON must be") from None
    try:
        try:
            _RAW_DECODER.decode(body)  # reads every byte and builds no objects
        except msgspec.DecodeError:
            _RAW_DECODER.decode(
                as_plain_json(body)
            )  # an odd record must not cost its page (I7), nor a good page seven tries
    except msgspec.DecodeError as error:
        raise GarbledBodyError(f"200, but the body of {len(body):,} bytes is not JSON ({error})") from None
    except RecursionError:
        raise ProtocolError(
            f"{describe_request(response.request)} answered with JSON nested too deeply to be read."
        ) from None


_RAW_DECODER = msgspec.json.Decoder(msgspec.Raw)
