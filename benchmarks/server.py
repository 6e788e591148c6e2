"""A server that is never the bottleneck: serves a generated library like v2 of the service, without limits and sign-in.

    python -m benchmarks.server --records 50000
    python -m benchmarks.server --real              # the real records of the sandbox's library instead

prints `ready http://127.0.0.1:PORT` and serves until it is ended. With `--times` it prints at its end when somebody asked for the first and
for the last page, by CLOCK_MONOTONIC, which all processes share. It has the paging of the service (25 records a page, 50 at most; X-Total;
Link with first, prev, next and last) and nothing else: the sandbox has the rules, errors and limits.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from benchmarks.publications import Publications

PATHS = frozenset({"/api/v2/publications", "/api/v2/publications/all"})
DEFAULT_PER_PAGE = 25
MAX_PER_PAGE = 50


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


class Server(ThreadingHTTPServer):
    """A library, and when somebody asked for its first and for its last page."""

    def __init__(self, publications: Publications | RealPublications) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.publications = publications
        self.times: list[float] = []


class Pages(BaseHTTPRequestHandler):
    """Answers GET requests on a connection that is kept."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # a response is one call
    server: Server

    def do_GET(self) -> None:
        """Answer with a page of records."""
        path, _, query = self.path.partition("?")
        if path not in PATHS:
            error = b'{"error":{"code":"RecordNotFound","message":"Requested record not found"}}'
            self._respond(404, error, {})
            return
        self.server.times[1:] = [time.monotonic()]  # the first stays
        asked = parse_qs(query)
        page, per_page = (int(asked.get(name, [default])[0]) for name, default in _DEFAULTS.items())
        per_page = min(per_page, MAX_PER_PAGE)
        start, total = (page - 1) * per_page, self.server.publications.count
        last = max(1, -(-total // per_page))
        numbers = {"first": 1, "prev": page - 1, "next": page + 1, "last": last}
        links = ", ".join(
            f'<http://{self.headers["Host"]}{path}?page={number}&per_page={per_page}>; rel="{rel}"'
            for rel, number in numbers.items()
            if 1 <= number <= last
        )
        records = self.server.publications.json(start, start + per_page)
        self._respond(200, b'{"records":[%b]}' % records, {"X-Total": str(total), "Link": links})

    def _respond(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


_DEFAULTS = {"page": 1, "per_page": DEFAULT_PER_PAGE}


def main() -> None:
    """Run the server from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=50_000, metavar="N", help="publications (default: 50000)")
    parser.add_argument("--real", action="store_true", help="the real records of the sandbox's library instead")
    parser.add_argument("--times", action="store_true", help="print at the end when the first and the last page went")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with Server(RealPublications() if arguments.real else Publications(arguments.records)) as server:
        print(f"ready http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        finally:
            if arguments.times:
                print(json.dumps(server.times), flush=True)


if __name__ == "__main__":
    main()
