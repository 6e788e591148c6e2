"""A server that is never the bottleneck: serves a generated library like v2 of the service, without limits and sign-in.

    python -m benchmarks.server --records 50000
    python -m benchmarks.server --real              # the real records of the sandbox's library instead

prints `ready http://127.0.0.1:PORT` and serves until it is ended. With `--times` it prints at its end when somebody asked for the first and
for the last page, by CLOCK_MONOTONIC, which all processes share. It has the paging of the service (25 records a page, 50 at most; X-Total;
Link with first, prev, next and last) and nothing else: the sandbox has the rules, errors and limits.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import signal
import socket
import time
from importlib.resources import files
from urllib.parse import parse_qs

from benchmarks.publications import Publications

PATHS = frozenset({"/api/v2/publications", "/api/v2/publications/all"})
DEFAULT_PER_PAGE = 25
MAX_PER_PAGE = 50
MAX_REQUEST = 64 * 1024
"""Limit of a request's head in bytes; longer requests are cut off."""

SEND_BUFFER = 4 * 1024 * 1024
"""Bytes that the kernel buffers, so that a page of 120 kB takes one call."""


class RealPublications:
    """The real records of the sandbox's library, with all their mistakes, in the form of v2 as far as that matters here."""

    def __init__(self) -> None:
        lines = gzip.decompress(files("sandbox.library").joinpath("publications.jsonl.gz").read_bytes()).splitlines()
        self._records = [
            json.dumps({"id": number, **json.loads(line), "cover": None, "assets": []}, ensure_ascii=False).encode()
            for number, line in enumerate(lines, 1)
        ]
        self.count = len(self._records)

    def json(self, start: int, stop: int) -> bytes:
        """The JSON of records, separated by commas."""
        return b",".join(self._records[start:stop])


class Connection(asyncio.Protocol):
    """One kept-alive connection: answers GET requests in their order."""

    def __init__(self, publications: Publications | RealPublications, times: list[float]) -> None:
        self._publications = publications
        self._times = times
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the responses."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)

    def data_received(self, data: bytes) -> None:
        """Answer all complete requests."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head, self._received = self._received[:end], self._received[end + 4 :]
            self._transport.write(self._answer(head))
        if len(self._received) > MAX_REQUEST:
            self._transport.abort()

    def _answer(self, head: bytes) -> bytes:
        method, target, *_version = head.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ")
        path, _, query = target.partition("?")
        if method != "GET" or path not in PATHS:
            return _response(
                "404 Not Found", b'{"error":{"code":"RecordNotFound","message":"Requested record not found"}}'
            )
        asked = parse_qs(query)
        per_page = min(_number(asked, "per_page", DEFAULT_PER_PAGE), MAX_PER_PAGE)
        return self._page(path, _host(head), _number(asked, "page", 1), per_page)

    def _page(self, path: str, host: str, page: int, per_page: int) -> bytes:
        self._times[1:] = [time.monotonic()]  # the first stays
        start, total = (page - 1) * per_page, self._publications.count
        last = max(1, -(-total // per_page))
        numbers = {
            "first": 1,
            "prev": page - 1 if page > 1 else None,
            "next": page + 1 if page < last else None,
            "last": last,
        }
        links = ", ".join(
            f'<http://{host}{path}?page={number}&per_page={per_page}>; rel="{rel}"'
            for rel, number in numbers.items()
            if number is not None
        )
        records = self._publications.json(start, start + per_page)
        return _response("200 OK", b'{"records":[%b]}' % records, f"X-Total: {total}\r\nLink: {links}\r\n")


def _host(head: bytes) -> str:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"host":
            return value.strip().decode("ascii", "replace")
    return "127.0.0.1"


def _number(query: dict[str, list[str]], name: str, default: int) -> int:
    text = query.get(name, [""])[0]
    return max(1, int(text)) if text.isascii() and text.isdigit() else default


def _response(status: str, body: bytes, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


async def serve(publications: Publications | RealPublications, port: int) -> list[float]:
    """Serve the records on `port` (0: any that is free) until SIGTERM or SIGINT. Returns when the first and the last page went."""
    loop, ended, times = asyncio.get_running_loop(), asyncio.Event(), list[float]()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    server = await loop.create_server(lambda: Connection(publications, times), "127.0.0.1", port)
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await ended.wait()
    server.close()
    return times


def main() -> None:
    """Run the server from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--records", type=int, default=50_000, metavar="N", help="publications in the library (default: 50000)"
    )
    parser.add_argument("--real", action="store_true", help="the real records of the sandbox's library instead")
    parser.add_argument("--times", action="store_true", help="print at the end when the first and the last page went")
    parser.add_argument("--port", type=int, default=0, help="default: any that is free")
    arguments = parser.parse_args()
    publications = RealPublications() if arguments.real else Publications(arguments.records)
    times = asyncio.run(serve(publications, arguments.port))
    if arguments.times:
        print(json.dumps(times))


if __name__ == "__main__":
    main()
