"""A server on a real socket that responds by a script and records the requests."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    method: str
    target: str
    headers: httpx.Headers
    body: bytes = b""

    @property
    def path(self) -> str:
        """The path, without the query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        """The parameters."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}


@dataclass(frozen=True)
class Answer:
    """The response. A body that is not bytes is sent as JSON; `raw` is sent instead of everything else, and the connection is closed."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str | list[str]] = field(default_factory=dict)
    raw: bytes | None = None

    def content(self) -> bytes:
        """The body's bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Script = Callable[[Received], Answer]


def in_turn(*answers: Answer | Exception) -> Script:
    """The responses one after the other, the last one repeats; an exception ends the connection."""
    queue = list(answers)

    def script(_request: Received) -> Answer:
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return script


_OF_ONE_CONNECTION = {"connection", "transfer-encoding", "server", "date"}


def forwarded(request: Received, server: str) -> Answer:
    """What another server answers to the request."""
    headers = {name: value for name, value in request.headers.items() if name != "content-length"}
    with closing(HTTPConnection(urlsplit(server).netloc, timeout=60)) as connection:
        connection.request(request.method, request.target, request.body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
    names = {name.lower() for name in answer.headers} - _OF_ONE_CONNECTION
    return Answer(content, answer.status, {name: answer.headers.get_all(name, []) for name in names})


class ScriptedServer:
    """Listens on 127.0.0.1 while the block runs. An exception of the script ends the connection without a response."""

    def __init__(self, script: Script) -> None:
        self.received: list[Received] = []
        self._scheme = "http"
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                request = Received(self.command, self.path, httpx.Headers(self.headers.items()), body)
                with outer._lock:
                    outer.received.append(request)
                self.send(script(request))

            def send(self, answer: Answer) -> None:
                if answer.raw is not None:
                    self.wfile.write(answer.raw)
                    self.close_connection = True
                    return
                content = answer.content()
                self.send_response(answer.status)
                headers = {"content-type": "application/json", "content-length": str(len(content)), **answer.headers}
                for name, value in headers.items():
                    for line in [value] if isinstance(value, str) else value:
                        self.send_header(name, line)
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else content)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_CONNECT = answer  # noqa: N815  http.server's names

            def handle_expect_100(self) -> bool:
                go_on = super().handle_expect_100()
                self.wfile.flush()
                return go_on

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that hangs up, or a script that raises, is part of the test."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def port(self) -> int:
        """The port."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its origin."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def secure(self, context: ssl.SSLContext) -> None:
        """Use TLS from now on."""
        self._scheme = "https"
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
