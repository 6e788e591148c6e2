"""Receives the authorization response: a listener on 127.0.0.1 that the browser is redirected to (RFC 8252, 7.3), or a pasted line."""

from __future__ import annotations

import os
import queue
import random
import socket
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

PATH = "/callback"

PORTS = range(20000, 32000)
"""Below the ports that systems use for outgoing connections, so that a registered port is likely to be free next time."""

MAX_CHARACTERS = 16_384
"""Characters of a response; a browser sends a few hundred."""

PAGE = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Received \xc2\xb7 Bookferry</title>
<style>body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem;color:#222}h1{font-size:1.5rem}</style>
</head><body><h1>Received</h1>
<p>Bookferry has the library's answer. The terminal shows whether you are signed in. You can close this window.</p></body></html>
"""

HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Connection": "close",
}


class AuthorizationResponse(NamedTuple):
    """One authorization response. `code_alone`: a person pasted the code without the rest of the address."""

    parameters: Mapping[str, str]
    code_alone: bool = False


Arrivals = queue.SimpleQueue[AuthorizationResponse | None]
"""Responses in the order in which they arrive. None: the input of pasted lines has ended."""


class RedirectListener:
    """Puts responses at `http://127.0.0.1:PORT/path` into a queue, from any browser on this machine, one after the other."""

    def __init__(self, redirect_uri: str, arrived: Arrivals) -> None:
        """Raises `OSError` if the port is taken."""
        parts = urlsplit(redirect_uri)
        path = parts.path or "/"

        class Handler(BaseHTTPRequestHandler):
            timeout = 30

            def do_GET(self) -> None:
                address = urlsplit(self.path)
                if address.path != path:
                    self.send_error(404)
                    return
                try:
                    self.send_response(200)
                    for name, value in HEADERS.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(PAGE)
                finally:  # the command may end as soon as it has the response
                    arrived.put(AuthorizationResponse(query_parameters(address.query)))

            def log_message(self, *_: object) -> None:
                """Log nothing: the address contains the code (I10)."""

        family = socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET

        class Server(ThreadingHTTPServer):
            address_family = family
            daemon_threads = True
            block_on_close = False  # browsers open connections ahead and leave them idle

            def handle_error(self, *_: Any) -> None:
                """Ignore a browser that goes away."""

        self._server = Server((parts.hostname or "127.0.0.1", parts.port or 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def redirect_addresses() -> list[str]:
    """Returns redirect addresses for a registration: each has a port (service.md#clients), and one may be taken at a later sign-in."""
    return [f"http://127.0.0.1:{port}{PATH}" for port in random.sample(PORTS, 3)]


def is_free(redirect_uri: str) -> bool:
    """Whether a listener can be opened there now."""
    parts = urlsplit(redirect_uri)
    try:
        socket.create_server((parts.hostname or "", parts.port or 0)).close()
    except OSError:
        return False
    return True


def read_pasted(descriptor: int, arrived: Arrivals) -> None:
    """Put what a person pastes into a queue, line by line; then None, once no line can come any more. An empty line is no response."""
    while line := os.read(descriptor, MAX_CHARACTERS):
        if words := line.decode("utf-8", "replace").split():
            arrived.put(AuthorizationResponse(pasted_parameters(words[-1]), code_alone="=" not in words[-1]))
    arrived.put(None)


def pasted_parameters(text: str) -> dict[str, str]:
    """Returns the parameters of a pasted text: the whole address that the browser shows, its query, or the code alone."""
    if "=" in text:
        _, mark, query = text.partition("?")
        return query_parameters(query if mark else text)
    return {"code": text} if text else {}


def query_parameters(query: str) -> dict[str, str]:
    """Returns the parameters of a query. A repeated parameter is invalid (RFC 6749, 3.1); the first one counts."""
    pairs: Iterable[tuple[str, str]] = parse_qsl(query.partition("#")[0][:MAX_CHARACTERS], keep_blank_values=True)
    return dict(reversed(list(pairs)))
