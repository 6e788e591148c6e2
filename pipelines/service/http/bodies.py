"""Reads the body of one answer: all of it or an error, of bounded size and in bounded time (I13)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from io import BytesIO

import httpx
import msgspec

from pipelines.errors import ProtocolError
from pipelines.service.clock import Clock
from pipelines.service.http.envelope import check_leniently, split_usual_page
from pipelines.service.http.failures import GarbledBodyError
from pipelines.service.redaction import outside_text

MAX_BODY = 64 * 1024 * 1024
"""Bytes of one API answer, unpacked. A page of 50 records with long abstracts is under 1 MiB."""

MAX_SECONDS = 300.0
"""Seconds that one body may take: a service that sends a byte now and then would never run into a timeout."""

UNPACK_BYTES = 1024 * 1024
"""Bytes unpacked at a time: what is packed a thousandfold must not fill the memory before it is counted."""


MAY_BE_EMPTY = frozenset({"PATCH", "DELETE"})
"""service-api.md, Endpoints: a DELETE brings "empty or object", and what other changes bring is not shown."""

RECORDS = "records"
"""Extension of an answer that is a page of records: the JSON of each, cut out where it was read to see whether it is JSON."""


def read_body(response: httpx.Response, clock: Clock) -> bytes:
    """The whole body, unpacked; of an answer 200 that says it is JSON, valid JSON, whose `RECORDS` are noted where it is a page.

    Raises `GarbledBodyError` and what httpx raises when the connection breaks, all of which may pass, and `ProtocolError` where the
    service answers with what no API answers.
    """
    body, size, until = BytesIO(), 0, clock.monotonic() + MAX_SECONDS  # no list: pieces of two bytes take forty each
    for chunk in _unpacked(response):
        size += body.write(chunk)
        if size > MAX_BODY:
            raise ProtocolError(
                f"{_named(response)} answered with more than {MAX_BODY // 2**20} MiB, which no page of records needs. Reading stopped. "
                "Is base_url the library's API?"
            )
        if clock.monotonic() > until:
            raise httpx.ReadTimeout(f"{size:,} bytes in {MAX_SECONDS:.0f} s, and no end")
    whole = body.getvalue()
    is_json = response.status_code == HTTPStatus.OK and "json" in response.headers.get("content-type", "json")
    if is_json and (whole or response.request.method not in MAY_BE_EMPTY):
        response.extensions[RECORDS] = _check_json(response, whole)
    return whole


def _unpacked(response: httpx.Response) -> Iterator[bytes]:
    """The body in steps. httpx would unpack too, but a whole chunk at once, and through as many layers as the service names."""
    if response.is_stream_consumed:  # by a transport without a socket, which unpacked it too
        return iter([response.content])
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return response.iter_raw()
    if coding in ("gzip", "x-gzip"):
        return _unzipped(response.iter_raw())
    raise ProtocolError(
        f"{_named(response)} answered packed as {outside_text(coding, 60)}, although only gzip was asked for."
    )


def _unzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    unpack, empty = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS), True
    try:
        for chunk in chunks:
            empty, rest = False, chunk
            while rest and not unpack.eof:
                yield unpack.decompress(rest, UNPACK_BYTES)
                rest = unpack.unconsumed_tail
        yield unpack.flush()
    except zlib.error as error:
        raise GarbledBodyError(f"the packed body cannot be unpacked ({error})") from None
    if not unpack.eof and not empty:
        raise GarbledBodyError("the packed body ends too early")


def _check_json(response: httpx.Response, body: bytes) -> Sequence[msgspec.Raw] | None:
    """The records of the body, if it is a page.

    JSON is UTF-8 (RFC 8259, 8.1). Bytes that are none were hurt on the way, or are so for good: then the address of the page is told.
    """
    if not _is_utf8(body):
        raise GarbledBodyError(f"200, but the body of {len(body):,} bytes is not UTF-8, as JSON must be")
    try:
        if (records := split_usual_page(body)) is not None:
            return records
        try:
            msgspec.json.decode(body, type=msgspec.Raw)  # reads every byte, builds nothing
        except (msgspec.DecodeError, UnicodeDecodeError):
            check_leniently(body)  # one odd record must not cost its page (trap B9), nor a good page seven tries
    except ValueError as error:
        raise GarbledBodyError(f"200, but the body of {len(body):,} bytes is not JSON ({error})") from None
    except RecursionError:
        raise ProtocolError(f"{_named(response)} answered with JSON nested too deeply to be read.") from None
    return None


def _is_utf8(body: bytes) -> bool:
    """Whether it is text. msgspec looks at the bytes of no text that it only passes on."""
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _named(response: httpx.Response) -> str:
    return f"{response.request.method} {outside_text(response.request.url)}"
