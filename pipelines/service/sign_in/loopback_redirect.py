"""Receives the authorization response: a listener on 127.0.0.1 that the browser is redirected to (RFC 8252, 7.3), or a pasted line."""

from __future__ import annotations

import html
import os
import queue
import random
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

PATH = "/callback"

PORTS = range(20000, 32000)
"""Below the ports that systems use for outgoing connections, so that a registered port is likely to be free next time."""

MAX_CHARACTERS = 16_384
"""Characters of a response; a browser sends a few hundred."""

RESULT_SECONDS = 120.0
"""Seconds for which the browser's window waits for the result."""

PAGE_SECONDS = 5.0
"""Seconds for which the sign-in waits until the browser has its page."""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · Bookferry</title>
<style>body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem;color:#222}}h1{{font-size:1.5rem}}</style>
</head><body><h1>{title}</h1><p>{text}</p></body></html>
"""

HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Connection": "close",
}


class AuthorizationResponse:
    """One authorization response. `show` displays the result to the person who brought it."""

    def __init__(self, parameters: Mapping[str, str], *, code_alone: bool = False) -> None:
        self.parameters = parameters
        self.code_alone = code_alone
        """Whether a person pasted the code without the rest of the address."""
        self.delivered: threading.Event | None = None
        """Set when a browser has the result page; None if no browser waits."""
        self._results: queue.SimpleQueue[tuple[int, str, str]] = queue.SimpleQueue()

    def show(self, title: str, text: str, status: int = 200) -> None:
        """Show this result in the browser. A person who pasted the response reads the terminal."""
        self._results.put((status, title, text))
        if self.delivered is not None:
            self.delivered.wait(PAGE_SECONDS)

    def result(self) -> tuple[int, str, str]:
        """Return status, title and text of the result page, as soon as they are known."""
        try:
            return self._results.get(timeout=RESULT_SECONDS)
        except queue.Empty:
            return (
                200,
                "Received",
                "Bookferry has got the response. The terminal shows the result; you can close this window.",
            )


class RedirectListener:
    """Receives responses at `http://127.0.0.1:PORT/path` from any browser on this machine, one after the other."""

    def __init__(self, redirect_uri: str) -> None:
        """Raises `OSError` if the port is taken."""
        parts = urlsplit(redirect_uri)
        path, arrived = parts.path or "/", queue.SimpleQueue[AuthorizationResponse]()
        self._arrived = arrived
        self._read, self._write = os.pipe()

        class Handler(BaseHTTPRequestHandler):
            timeout = 30

            def do_GET(self) -> None:
                address = urlsplit(self.path)
                if address.path != path:
                    self.send_page(404, "Not here", "There is nothing at this address.")
                    return
                response = AuthorizationResponse(query_parameters(address.query))
                response.delivered = threading.Event()
                arrived.put(response)
                wake()
                try:
                    self.send_page(*response.result())
                finally:
                    response.delivered.set()

            def send_page(self, status: int, title: str, text: str) -> None:
                body = PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
                self.send_response(status)
                for name, value in {**HEADERS, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing: the address contains the code (I10)."""

        family = socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET

        class Server(ThreadingHTTPServer):
            address_family = family
            daemon_threads = True
            block_on_close = False  # browsers open connections ahead and leave them idle

            def handle_error(self, *_: Any) -> None:
                """Ignore a browser that goes away."""

        wake = self._wake
        try:
            self._server = Server((parts.hostname or "127.0.0.1", parts.port or 0), Handler)
        except OSError:
            self._close_pipe()
            raise
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Becomes readable when a response has arrived."""
        return self._read

    def arrived(self) -> AuthorizationResponse:
        """Return the next response; call it when `fileno` is readable."""
        os.read(self._read, 1)
        return self._arrived.get()

    def close(self) -> None:
        """Stop listening. A browser that waits for a result gets one first."""
        self._server.shutdown()
        with suppress(queue.Empty):
            while True:
                self._arrived.get_nowait().show("Too late", "This sign-in is over. The terminal shows the result.", 410)
        self._server.server_close()
        self._thread.join()
        self._close_pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wake(self) -> None:
        with suppress(OSError):
            os.write(self._write, b"!")

    def _close_pipe(self) -> None:
        os.close(self._read)
        os.close(self._write)


def free_addresses(count: int, choose: Callable[[], int] = lambda: random.choice(PORTS)) -> list[str]:  # noqa: S311  no secret
    """Returns redirect addresses whose ports are free now, for a registration: if one is taken at a later sign-in, another will do."""
    addresses: list[str] = []
    for _ in range(1000):
        address = f"http://127.0.0.1:{choose()}{PATH}"
        if address not in addresses and is_free(address):
            addresses.append(address)
        if len(addresses) == count:
            break
    return addresses


def is_free(redirect_uri: str) -> bool:
    """Whether a listener can be opened there now."""
    try:
        RedirectListener(redirect_uri).close()
    except OSError:
        return False
    return True


def next_response(
    listener: RedirectListener | None, pasted: int | None, seconds: float
) -> AuthorizationResponse | None:
    """Wait for a response, from the browser or as a line at the file descriptor `pasted`; None when the time is over.

    Raises `EOFError` if the line can never come. An empty line is no response.
    """
    sources: list[Any] = [source for source in (listener, pasted) if source is not None]
    until = time.monotonic() + seconds
    while True:
        ready, _, _ = select.select(sources, [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        if listener is not None and listener in ready:
            return listener.arrived()
        assert pasted is not None  # noqa: S101  else nothing was ready
        line = os.read(pasted, MAX_CHARACTERS)
        if not line:
            raise EOFError
        if words := line.decode("utf-8", "replace").split():
            return AuthorizationResponse(pasted_parameters(words[-1]), code_alone="=" not in words[-1])


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
