"""The innermost transport: sockets, TLS and the environment's proxy. It knows no libraries, budgets or sign-ins."""

from __future__ import annotations

import functools
import logging
import os
import socket
import ssl
import threading
import urllib.request
import weakref
from contextlib import suppress
from typing import Any

import httpx

from pipelines.certificates import CERTIFICATES, check_certificates
from pipelines.errors import ConfigurationError, TemporaryError
from pipelines.service.http.urls import url_of
from pipelines.service.redaction import outside_text
from pipelines.settings.addresses import is_loopback

CONNECT_SECONDS = 10.0
"""Seconds that opening a connection may take."""

KEEPALIVE_SECONDS = 5.0
"""Seconds for which an idle connection stays open: shorter than any common server keeps it, so that it seldom breaks just when it is
used.
"""


class NetworkTransport(httpx.HTTPTransport):
    """httpx's transport for one address, through the proxy that the environment names for it, if any.

    `close` also ends the requests of other threads: they fail at once, and nothing leaves any more.
    """

    def __init__(self, base_url: str) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEPALIVE_SECONDS)
        proxy = proxy_for(base_url)
        is_encrypted = httpx.URL(base_url).scheme == "https"  # else, on this machine, no certificate matters
        certificates = _certificates(*(os.environ.get(name, "") if is_encrypted else "" for name in CERTIFICATES))
        try:
            super().__init__(verify=certificates, proxy=proxy, limits=limits)
        except (ValueError, ImportError, httpx.InvalidURL):
            raise ConfigurationError(
                f"The environment names a proxy for {base_url} that cannot be used: http://host:port or https://host:port is expected. "
                f"Correct {httpx.URL(base_url).scheme}_proxy or all_proxy, or name the library's host in no_proxy."
            ) from None
        # httpcore logs the headers of responses, including cookies, and httpx logs every address (I10)
        for name in ("httpcore", "httpx"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._lock = threading.Lock()
        self._closed = False
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request. Raises `TemporaryError` if `close` was called before it left."""
        outer_trace = request.extensions.get("trace", lambda _event, _info: None)

        def trace(event: str, info: dict[str, Any]) -> None:
            if event.endswith(("connect_tcp.complete", "start_tls.complete")):
                self._keep(info["return_value"])
            elif event.endswith("send_request_headers.started"):
                self._refuse_if_closed()
            outer_trace(event, info)

        request.extensions = {**request.extensions, "trace": trace}
        self._refuse_if_closed()
        return super().handle_request(request)

    def close(self) -> None:
        """Close all connections, and wake every thread that waits for one of them."""
        with self._lock:
            self._closed = True
            sockets = list(self._sockets)
        for sock in sockets:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # closing alone would not wake a thread that reads
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


@functools.cache
def _certificates(file: str, folder: str) -> ssl.SSLContext:
    """Httpx's TLS settings, made once for all transports: reading the certificates takes longer than a request.

    `file`, `folder`: what the environment names, or nothing. Raises `ConfigurationError` where it cannot be used.
    """
    check_certificates(file, folder)
    return httpx.create_ssl_context(trust_env=bool(file or folder))


def proxy_for(base_url: str) -> str | None:
    """Returns the proxy that the environment names for this address (`https_proxy`, `all_proxy`, minus `no_proxy`).

    Never a proxy for this machine itself: plain http is allowed there because nothing leaves the machine, and a proxy would receive it.
    """
    try:
        url = url_of(base_url)
    except httpx.InvalidURL:
        raise ConfigurationError(
            f"The host in {outside_text(base_url)} is no name to which a request can be sent. Correct base_url."
        ) from None
    if is_loopback(url.host) or urllib.request.proxy_bypass(url.netloc.decode("ascii")):
        return None
    named = urllib.request.getproxies()
    proxy = named.get(url.scheme) or named.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"
