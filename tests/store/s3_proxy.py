"""An S3 server as others are: it fails for a while, is slow, resets connections, or knows no trailing checksums."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.store.s3 import S3

RESET = -1
"""Instead of a status: the connection ends without an answer, after the request took effect."""


@dataclass
class Proxy:
    """What it does. `fault` receives method and path and returns a status with an S3 code, or None to forward the request."""

    s3: S3
    """As clients of the proxy see it."""
    fault: Callable[[str, str], tuple[int, str] | None] = lambda _method, _path: None
    latency: float = 0.0
    trailers: bool = True
    """Whether it knows trailing checksums; radosgw 16 does not."""
    requests: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def s3_proxy(server: S3) -> Iterator[Proxy]:  # noqa: C901  one handler
    """A proxy on a free port in front of an S3 server."""
    target = urlsplit(server.endpoint)
    proxy = Proxy(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version: ClassVar[str] = "HTTP/1.1"
        disable_nagle_algorithm: ClassVar[bool] = True

        def handle_one(self) -> None:
            time.sleep(proxy.latency)
            proxy.requests.append((self.command, self.path))
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            trailing = "x-amz-trailer" in self.headers or "aws-chunked" in self.headers.get("content-encoding", "")
            if not proxy.trailers and (trailing or "transfer-encoding" in self.headers):
                self._answer(411, b"<Error><Code>MissingContentLength</Code></Error>", close=True)
                return
            fault = proxy.fault(self.command, self.path)
            if fault is not None and fault[0] != RESET:
                self._answer(fault[0], f"<Error><Code>{fault[1]}</Code><Message>Injected</Message></Error>".encode())
                return
            upstream = http.client.HTTPConnection(target.hostname or "", target.port)
            upstream.request(self.command, self.path, body, dict(self.headers.items()))
            answer = upstream.getresponse()
            content = answer.read()
            upstream.close()
            if fault is not None:
                # SO_LINGER 0: a reset instead of an orderly end
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
                return
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                    self.send_header(name, value)
            head = self.command == "HEAD"
            self.send_header("content-length", answer.headers["content-length"] if head else str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one  # noqa: N815  names of the base class

        def _answer(self, status: int, content: bytes, *, close: bool = False) -> None:
            self.send_response_only(status)
            self.send_header("content-type", "application/xml")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
            self.close_connection = close

        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def finish(self) -> None:
            """Close, though the client may have gone."""
            with suppress(OSError, ValueError):
                super().finish()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
        proxy.s3 = replace(server, endpoint=f"http://127.0.0.1:{listener.server_port}")
        try:
            yield proxy
        finally:
            listener.shutdown()
