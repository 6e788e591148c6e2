"""The innermost transport: sockets, TLS and the environment's proxy. Knows nothing of libraries, budgets or sign-in."""

from __future__ import annotations

import logging
import socket
import threading
import urllib.request
import weakref
from contextlib import suppress
from typing import Any

import httpx

from pipelines.errors import ConfigurationError, TemporaryError
from pipelines.settings.addresses import is_loopback

CONNECT_SECONDS = 10.0
"""Seconds that opening a connection may take."""

KEEPALIVE_SECONDS = 5.0
"""Seconds for which an idle connection is kept: less than any common server does, so that it seldom ends just when it is used."""


class NetworkTransport(httpx.HTTPTransport):
    """httpx's transport for one address, through the proxy that the environment names for it, if it names one.

    `close` also ends what is under way in other threads: what they wait for fails at once, and nothing leaves any more.
    """

    def __init__(self, base_url: str) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEPALIVE_SECONDS)
        proxy = proxy_for(base_url)
        try:
            super().__init__(proxy=proxy, limits=limits)
        except (ValueError, ImportError, httpx.InvalidURL):
            raise ConfigurationError(
                f"The environment names a proxy for {base_url} that cannot be used: http://host:port or https://host:port is expected. "
                f"Correct {httpx.URL(base_url).scheme}_proxy or all_proxy, or name the library's host in no_proxy."
            ) from None
        # httpcore logs the headers of answers, cookies among them, and httpx every address (I10)
        for name in ("httpcore", "httpx"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._lock = threading.Lock()
        self._closed = False
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it; raise `TemporaryError` if this is closed before it has left."""
        told = request.extensions.get("trace", lambda _event, _info: None)

        def trace(event: str, info: dict[str, Any]) -> None:
            if event.endswith(("connect_tcp.complete", "start_tls.complete")):
                self._keep(info["return_value"])
            elif event.endswith("send_request_headers.started"):
                self._refuse_if_closed()
            told(event, info)

        request.extensions = {**request.extensions, "trace": trace}
        self._refuse_if_closed()
        return super().handle_request(request)

    def close(self) -> None:
        """Close all connections, and wake whoever waits for one of them."""
        with self._lock:
            self._closed = True
            sockets = list(self._sockets)
        for one in sockets:
            with suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)  # closing alone would not wake a thread that reads
        super().close()

    def _keep(self, stream: Any) -> None:
        with self._lock:
            self._sockets.add(stream.get_extra_info("socket"))
            closed = self._closed
        if closed:
            stream.close()
            self._refuse_if_closed()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise TemporaryError("The run was stopped before this request was sent. Run the same command again.")


def proxy_for(base_url: str) -> str | None:
    """The proxy that the environment names for this address (`https_proxy`, `all_proxy`, minus `no_proxy`).

    Never one for this machine itself: plain http is allowed there because it cannot be overheard, and to a proxy it could.
    """
    url = httpx.URL(base_url)
    if is_loopback(url.host) or urllib.request.proxy_bypass(url.netloc.decode("ascii")):
        return None
    named = urllib.request.getproxies()
    proxy = named.get(url.scheme) or named.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"
