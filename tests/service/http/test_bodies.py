"""I13: no unbounded read. A body is whole, of bounded size and read in bounded time, or it is one clear error."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator

import httpx
import pytest

from pipelines.errors import ProtocolError
from pipelines.service.client import LibraryClient
from pipelines.service.http.bodies import MAX_BODY, MAX_SECONDS, read_body
from pipelines.service.http.failures import GarbledBodyError
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Script, ScriptedServer

PAGE = json.dumps({"records": [{"id": number} for number in range(500)]}).encode()


class Chunks(httpx.SyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


def read(chunks: Iterable[bytes], clock: ManualClock | None = None, status: int = 200, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(status, headers=named, stream=Chunks(chunks))
    response.request = httpx.Request("GET", "http://library.test/api/v2/publications")
    return read_body(response, clock or ManualClock())


def slices(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 7, 65536])
@pytest.mark.parametrize("coding", ["", "identity", "gzip", "GZIP", "x-gzip"])
def test_a_body_is_read_whole(coding: str, size: int) -> None:
    """I6: byte for byte, in any pieces, packed or not."""
    body = gzip.compress(PAGE) if "gzip" in coding.lower() else PAGE
    assert read(slices(body, size), content_encoding=coding) == PAGE


def test_an_empty_body_needs_no_packing() -> None:
    """A 204 may say gzip and send nothing."""
    assert read([], status=204, content_encoding="gzip") == b""


@pytest.mark.long
def test_a_body_of_the_greatest_size_is_read() -> None:
    assert len(read([b" " * (MAX_BODY - 2), b"[]"])) == MAX_BODY


@pytest.mark.parametrize("times", [1, 2])
def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(times: int) -> None:
    """I13: 256 MiB of blanks packed into 1 MB, in one piece; and the same packed once more."""
    pack = zlib.compressobj(1, wbits=31)
    bomb = b"".join([*(pack.compress(b" " * 2**20) for _ in range(256)), pack.flush()])
    coding = ", ".join(["gzip"] * times)
    for _ in range(times - 1):
        bomb = gzip.compress(bomb)
    tracemalloc.start()
    with pytest.raises(ProtocolError, match=r"more than 64 MiB|packed as gzip, gzip"):
        read([bomb], content_encoding=coding)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.5 * MAX_BODY


@pytest.mark.long
def test_a_body_in_tiny_pieces_takes_no_more_memory_than_a_whole_one() -> None:
    """I13, I11: chunks of two bytes from a hostile service; as objects of their own they would take twenty times as much memory."""
    pieces = 2**17
    tracemalloc.start()
    read((bytes([32, 32]) for _ in range(pieces)), content_type="text/plain")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 2 * pieces


@pytest.mark.parametrize("coding", ["br", "deflate", "zstd", "gzip, br", "\x1b[2J"])
def test_an_unrequested_content_encoding_is_refused(coding: str) -> None:
    """I13: each decompressor is another way to be flooded; only gzip is accepted."""
    with pytest.raises(ProtocolError, match="only gzip was asked for") as caught:
        read([b"[]"], content_encoding=coding)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("body", "coding", "pattern"),
    [
        (gzip.compress(PAGE)[:-20], "gzip", "ends too early"),
        (b"not packed at all", "gzip", "cannot be unpacked"),
        (gzip.compress(PAGE[:-5]), "gzip", "not JSON"),
        (PAGE[: len(PAGE) // 2], "", "not JSON"),
        (b"", "", "not JSON"),
        (b'{"records": [nan]}', "", "not JSON"),
        (b'{"records": ["\\ud800"', "", "not JSON"),
        (b"<html>", "", "not JSON"),
        (b'{"records": [{"title": "caf\xe9"}]}', "", "not UTF-8"),
        (PAGE.decode().encode("utf-16"), "", "not UTF-8"),
    ],
)
def test_a_cut_or_garbled_body_may_be_whole_the_next_time(body: bytes, coding: str, pattern: str) -> None:
    """I8: a GET whose response was cut is repeated; `RetryTransport` repeats this error."""
    with pytest.raises(GarbledBodyError, match=pattern):
        read([body], content_encoding=coding, content_type="application/json; charset=utf-8")


@pytest.mark.parametrize("odd", [b'"\\ud800"', b"NaN", b"-Infinity", b"9" * 5000, b"1e99999", b'"a\tb"'])
@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"], ids=["", "byte order mark"])
def test_what_careless_services_send_is_read_at_the_first_try(odd: bytes, begin: bytes) -> None:
    """I7: an odd record does not cost its page; staging decides about it."""
    body = begin + b'{"records":[{"id":1},{"id":2,"title":' + odd + b'},{"id":3}]}'
    assert read([body], content_type="application/json") == body


@pytest.mark.parametrize(("status", "kind"), [(404, "application/json"), (200, "text/html"), (200, "text/plain")])
def test_other_content_types_need_not_be_json(status: int, kind: str) -> None:
    """Only the caller knows the meaning of this body; another try would not change it."""
    assert read([b"<p>Not here</p>"], status=status, content_type=kind) == b"<p>Not here</p>"


def test_a_body_that_drips_is_given_up(clock: ManualClock) -> None:
    """I13: one byte a minute never runs into the read timeout."""

    def drip() -> Iterator[bytes]:
        while True:
            clock.sleep(60)
            yield b" "

    begun = clock.monotonic()
    with pytest.raises(httpx.ReadTimeout, match="and no end"):
        read(drip(), clock)
    assert clock.monotonic() - begun <= MAX_SECONDS + 60


def test_a_real_server_that_packs_is_understood(
    serve: Callable[[Script], ScriptedServer], client_for: Callable[..., LibraryClient]
) -> None:
    """Only gzip is requested, whatever else this Python could unpack."""
    server = serve(lambda _: Answer(gzip.compress(PAGE), headers={"content-encoding": "gzip"}))
    assert client_for(server.url).get(f"{server.url}/api/v2/publications").content == PAGE
    assert server.received[0].headers["accept-encoding"] == "gzip"
