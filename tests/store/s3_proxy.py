"""An S3 server as others are: it fails for a while, is slow, resets connections, or knows no trailing checksums."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tests.service.scripted import Answer, Received, ScriptedServer, forwarded
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
def s3_proxy(server: S3) -> Iterator[Proxy]:
    """A proxy on a free port in front of an S3 server."""
    proxy = Proxy(server)

    def script(request: Received) -> Answer:
        time.sleep(proxy.latency)
        proxy.requests.append((request.method, request.target))
        headers = request.headers
        trailing = "x-amz-trailer" in headers or "aws-chunked" in headers.get("content-encoding", "")
        if not proxy.trailers and (trailing or "transfer-encoding" in headers):
            return _error(411, "MissingContentLength", connection="close")
        fault = proxy.fault(request.method, request.target)
        if fault is not None and fault[0] != RESET:
            return _error(*fault)
        answer = forwarded(request, server.endpoint)
        if fault is not None:
            raise ConnectionResetError
        return answer

    with ScriptedServer(script) as listener:
        proxy.s3 = replace(server, endpoint=listener.url)
        yield proxy


def _error(status: int, code: str, **headers: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>Injected</Message></Error>".encode()
    return Answer(body, status, {"content-type": "application/xml", **headers})
