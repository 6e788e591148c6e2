"""Downloads of one file from servers with every kind of fault (I2, I12, I13)."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from typing import Any

import pytest

from pipelines.service.files import download
from pipelines.service.files.download import DownloadError, Downloads, Received
from tests.service.conftest import Serve
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, in_turn

CONTENT = bytes(range(256)) * 1000

NO_CLIENT: Any = None
"""The library's client is not for storages."""


def fetch(clock: ManualClock, address: str, *, base_url: str = "http://127.0.0.1:1", **options: Any) -> Any:
    """Returns the result and the written bytes."""
    into = io.BytesIO(b"left by an earlier try")
    transfers = Downloads(base_url, client=NO_CLIENT, clock=clock)
    try:
        return transfers.fetch(address, into, **{"size": len(CONTENT), **options}), into.getvalue()
    except DownloadError as error:
        return error, into.getvalue()
    finally:
        transfers.close()


LENGTH, GZIP = len(CONTENT), gzip.compress(CONTENT)
BOMB = gzip.compress(bytes(10**7))
PACKED_OR_NOT: list[tuple[str, bytes, int | None, bytes, str]] = [
    *(
        (coding, body, size, CONTENT, "")
        for size in (None, LENGTH)
        for coding, body in (
            *((coding, CONTENT) for coding in ("gzip", "identity", "aws-chunked")),
            ("gzip", GZIP),
            ("aws-chunked, GZIP", GZIP),
            ("gzip", gzip.compress(CONTENT[:50]) + gzip.compress(CONTENT[50:])),
            ("gzip", GZIP + bytes(600)),
            ("x-gzip", GZIP),
        )
    ),
    *((coding, GZIP, len(GZIP), GZIP, f"packed ({coding}).") for coding in ("gzip", "deflate")),
    *(
        (coding, body, size, body, f"packed ({coding})")
        for coding, body in (("br", CONTENT), ("deflate", zlib.compress(CONTENT)), ("gzip, gzip", gzip.compress(GZIP)))
        for size in (None, LENGTH, LENGTH + 1)
    ),
]
"""What a storage says of a body, the body, the size that the library says, the file, and what is said of it."""


class TestGood:
    """A whole file, its hash and its ETag."""

    def test_a_file(self, serve: Serve, clock: ManualClock) -> None:
        """Requested without compression."""
        server = serve(in_turn(Answer(CONTENT, headers={"etag": '"v1"'})))
        outcome, written = fetch(clock, f"{server.url}/f?X-Amz-Signature=abc")
        assert outcome == Received(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), '"v1"')
        assert written == CONTENT
        [request] = server.received
        assert request.headers["accept-encoding"] == "identity"
        assert not {"authorization", "cookie", "if-none-match"} & set(request.headers)
        outcome, written = fetch(clock, serve(in_turn(Answer(b""))).url, size=0)
        assert (outcome.size, written) == (0, b""), "an empty file is a file"

    def test_unchanged(self, serve: Serve, clock: ManualClock) -> None:
        """The request names the ETag that we have; a 304 without it is a failure."""
        server = serve(in_turn(Answer(status=304)))
        assert fetch(clock, server.url, etag='"v1"')[0] is None
        assert server.received[0].headers["if-none-match"] == '"v1"'
        assert isinstance(fetch(clock, server.url)[0], DownloadError)


class TestTriesAgain:
    """A temporary failure is tried again, a few times."""

    @pytest.mark.parametrize(
        "answer",
        [
            Answer(status=503),
            Answer(status=429),
            Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 256000\r\n\r\ncut"),
            Answer(raw=b"HTTP/1.1 200 OK\r\n\r\nended too early, without a sign"),
            Answer(raw=b"nonsense"),
        ],
    )
    def test_what_passes(self, serve: Serve, clock: ManualClock, answer: Answer) -> None:
        """The file contains no byte of the broken try."""
        server = serve(in_turn(answer, answer, Answer(CONTENT)))
        outcome, written = fetch(clock, server.url)
        assert (outcome.size, written, len(server.received)) == (len(CONTENT), CONTENT, 3)

    def test_retry_after_is_waited_out(self, serve: Serve, clock: ManualClock) -> None:
        """Exact to the second; a file that must wait for hours is left for a later run."""
        before = clock.monotonic()
        fetch(clock, serve(in_turn(Answer(status=503, headers={"retry-after": "77"}), Answer(CONTENT))).url)
        assert clock.monotonic() - before == 77
        server = serve(in_turn(Answer(status=503, headers={"retry-after": "7200"})))
        outcome, _ = fetch(clock, server.url)
        assert (outcome.may_pass, len(server.received)) == (True, 1)
        outcome, _ = fetch(clock, "http://127.0.0.1:2/f?X-Amz-Signature=abc")  # nobody listens
        assert (outcome.may_pass, "abc" in str(outcome)) == (True, False)


class TestRefuses:
    """Wrong content is refused, and a permanent failure is not repeated."""

    def test_more_than_anybody_needs(self, serve: Serve, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file without a stated size has a limit all the same."""
        monkeypatch.setattr(download, "MAX_BYTES", 1000)
        outcome, _ = fetch(clock, serve(in_turn(Answer(CONTENT))).url, size=None)
        assert "at most 1,000 are taken" in str(outcome)

    @pytest.mark.parametrize(("coding", "body", "size", "content", "remark"), PACKED_OR_NOT)
    def test_what_a_storage_says_of_bytes_is_checked(  # noqa: PLR0917
        self, serve: Serve, clock: ManualClock, coding: str, body: bytes, size: int | None, content: bytes, remark: str
    ) -> None:
        """A storage that packs unasked, or only says so: the file is what it packed. What is kept packed is said."""
        server = serve(in_turn(Answer(body, headers={"content-encoding": coding})))
        outcome, written = fetch(clock, server.url, size=size)
        assert (written, outcome.sha256) == (content, hashlib.sha256(content).hexdigest())
        assert remark in (outcome.remark or "")
        assert (outcome.remark is None) == (remark == "")

    def test_packed_without_a_length(self, serve: Serve, clock: ManualClock) -> None:
        """A proxy packs on the way: the library's size is that of the content."""
        head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n{len(GZIP):x}\r\n"
        server = serve(in_turn(Answer(raw=head.encode() + GZIP + b"\r\n0\r\n\r\n")))
        assert fetch(clock, server.url)[1] == CONTENT

    @pytest.mark.parametrize(
        "body",
        [
            CONTENT,
            GZIP[:-9],
            GZIP[:-8] + bytes(8),
            GZIP + GZIP[:-9],
            gzip.compress(b"") * 10**5,
            *(GZIP, gzip.compress(CONTENT + b"more"), BOMB),
            b"",
        ],
    )
    def test_what_cannot_be_unpacked_and_has_another_size(self, serve: Serve, clock: ManualClock, body: bytes) -> None:
        """It is not all of the file, or its check sum or its end is another: it is refused, as what does not say that it is packed."""
        for coding in ("gzip", "identity"):
            server = serve(in_turn(Answer(body, headers={"content-encoding": coding})))
            outcome, written = fetch(clock, server.url, size=len(CONTENT) + 1)
            assert isinstance(outcome, DownloadError)
            assert body != CONTENT or f"the library says {len(CONTENT) + 1:,}" in str(outcome)
            assert len(written) <= 2 * len(CONTENT) + 2**20 + 2

    def test_too_slow(self, serve: Serve, clock: ManualClock) -> None:
        """A byte now and then is no progress."""
        server = serve(in_turn(Answer(CONTENT)))
        transfers = Downloads(server.url, client=NO_CLIENT, clock=clock)
        storage = serve(in_turn(Answer(CONTENT[:1000])))
        with pytest.raises(DownloadError, match="1,000 bytes in 60 s") as failed:
            transfers.fetch(storage.url, _Slow(clock), size=1000)
        transfers.close()
        assert failed.value.may_pass


class _Slow(io.BytesIO):
    """A file into which every write takes minutes."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def write(self, data: Any) -> int:
        self._clock.sleep(300)
        return super().write(data)


class TestRedirects:
    """Each redirect is checked anew."""

    def test_followed(self, serve: Serve, clock: ManualClock) -> None:
        """To another host, too; a relative address is resolved against the previous one."""
        store = serve(in_turn(Answer(status=302, headers={"location": "/there?X-Amz-Signature=x"}), Answer(CONTENT)))
        server = serve(in_turn(Answer(status=307, headers={"location": f"{store.url}/here"})))
        assert fetch(clock, server.url)[0].size == len(CONTENT)
        assert [request.path for request in store.received] == ["/here", "/there"]

    @pytest.mark.parametrize(
        "address",
        [
            *("http://storage.example/f", "ftp://x/f", "file:///etc/passwd", "https://", "//"),
            *("https://user:password@storage.example/f", "https://xn--n3h.example.org/f"),
        ],
    )
    def test_not_to_an_unsafe_address(self, serve: Serve, clock: ManualClock, address: str) -> None:
        """Plain http over the network, or an address that is no address of a file: named by the library, or by a redirect."""
        server = serve(in_turn(Answer(status=302, headers={"location": address})))
        for named in (address, server.url):
            outcome, _ = fetch(clock, named)
            assert isinstance(outcome, DownloadError)
            assert (outcome.may_pass, "password" in str(outcome)) == (False, False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_library_far_away_names_no_service_of_this_machine(serve: Serve, clock: ManualClock, host: str) -> None:
    """I13: the library's files cannot be on this machine, but a service on it may trust local requests."""
    server = serve(in_turn(Answer(CONTENT)))
    outcome, _ = fetch(clock, f"http://{host}:{server.port}/f", base_url="https://library.example")
    assert "on this machine" in str(outcome)
    assert server.received == []
