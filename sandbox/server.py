"""The socket server: HTTP/1.1 with persistent connections and a thread for each connection.

Werkzeug's own handler closes a connection after each response. This one reads the rest of a request's body, so that the next
request starts at the right place. Faults of a socket are implemented here.
"""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import ClientDisconnected
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler
from werkzeug.wsgi import LimitedStream

from sandbox.errors import unprocessable
from sandbox.faults import BrokenBody, ConnectionReset

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

# A longer rest of a body is not read; the connection is closed instead
_DRAIN_BYTES = 1 << 20
_BODILESS = {204, 304}


class Server(ThreadedWSGIServer):
    """Listens when it is constructed; ``serve_forever`` answers. Its end does not wait for threads."""

    def __init__(self, host: str, port: int, app: WSGIApplication) -> None:
        super().__init__(host, port, app, handler=_Handler)

    def server_bind(self) -> None:
        """Raises ``ApiError`` if the address cannot be used; werkzeug would end the process."""
        try:
            super().server_bind()
        except (OSError, OverflowError) as error:
            self.server_close()
            reason = error.strerror if isinstance(error, OSError) else error
            raise unprocessable(
                f"port {self.port} of {self.host} cannot be used: {reason}. Choose another one."
            ) from None

    @property
    def url(self) -> str:
        """The address of the server on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  # compared, not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body are sent together
    rfile: io.BufferedIOBase

    def run_wsgi(self) -> None:
        """Answers one request."""
        environ = self.make_environ()
        body = self._body(environ)
        try:
            self._send(self.server.app(environ, self._start), with_body=self.command != "HEAD")
        except ConnectionReset:
            self._reset()
            raise
        except BrokenBody:
            self.wfile.flush()
            raise
        self._drain(body)

    def _body(self, environ: WSGIEnvironment) -> LimitedStream:
        """Gives the application the body of this request and no more."""
        if environ.get("wsgi.input_terminated"):
            self.close_connection = True
            return LimitedStream(io.BytesIO(), 0)
        length = environ.get("CONTENT_LENGTH", "")
        size = int(length) if length.isascii() and length.isdigit() else 0
        body = LimitedStream(self.rfile, size)  # type: ignore[arg-type]
        environ["wsgi.input"] = io.BufferedReader(body)
        return body

    def _start(self, status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> Any:
        """Writes the head, which stays in the buffer until the body follows."""
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        framed = int(code) in _BODILESS or any(name.lower() == "content-length" for name, _ in headers)
        if not framed:
            self.close_connection = True
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        return self.wfile.write

    def _send(self, chunks: Iterable[bytes], *, with_body: bool) -> None:
        try:
            for chunk in chunks:
                if with_body:
                    self.wfile.write(chunk)
            self.wfile.flush()
        finally:
            if close := getattr(chunks, "close", None):
                close()

    def _drain(self, body: LimitedStream) -> None:
        if body.limit - body.tell() > _DRAIN_BYTES:
            self.close_connection = True
        if not self.close_connection:
            try:
                body.exhaust()
            except ClientDisconnected:
                self.close_connection = True

    def _reset(self) -> None:
        """Closes the socket without lingering, so that the kernel sends RST."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def handle_expect_100(self) -> bool:
        """Sends 100 Continue at once."""
        answer = super().handle_expect_100()
        self.wfile.flush()
        return answer

    def version_string(self) -> str:
        """The ``Server`` header."""
        return "library-sandbox"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Logs nothing: ``/_control/requests`` has the requests."""
