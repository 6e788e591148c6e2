"""Storage services that a library names: which addresses are allowed, connections without a sign-in, and S3's error messages.

A storage service never gets a sign-in (I2). Messages show only scheme and host of a signed address (I10).
"""

from __future__ import annotations

import re
import threading

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception

from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock
from pipelines.service.http.network import CONNECT_SECONDS, NetworkTransport
from pipelines.service.http.retries import FailedTryError, retrying
from pipelines.service.http.transport import origin_of
from pipelines.service.http.urls import url_of
from pipelines.service.redaction import outside_text
from pipelines.settings.addresses import is_loopback
from pipelines.version import VERSION

MAX_HOSTS = 64
"""Storage services that one library may name."""

TRIES = 4
"""Tries of one file, with some seconds between them. A download that fails longer is tried again after the listing."""

MAX_PAUSE = 120.0
"""Seconds that a storage service may ask one file to wait."""

HEADERS = {"accept": "*/*", "accept-encoding": "identity", "user-agent": f"bookferry/{VERSION}"}
"""Headers of every request to a storage service."""

_ERROR_BYTES = 4096
"""Bytes of an error response that are read."""


class UnsafeAddressError(Exception):
    """The library names an address where none of its files can be."""


class StorageClient:
    """Connections to the storage services of one library. Safe to use from several threads; `close` ends running requests.

    `client`: of the library, for files on its own host.
    """

    def __init__(self, base_url: str, client: LibraryClient) -> None:
        base = httpx.URL(base_url)
        self._client = client
        self._own = origin_of(base)
        self._at_home = is_loopback(base.host)
        self._lock = threading.Lock()
        self._networks: dict[tuple[str, bytes, int], NetworkTransport] = {}
        self._closed = False

    def is_own_host(self, url: httpx.URL) -> bool:
        """Whether this is the library's own host, where each request is charged to the budget (I1)."""
        return origin_of(url) == self._own

    def _check(self, url: httpx.URL) -> None:
        """Raise `UnsafeAddressError` for an address that leads to a service of this machine, or over plain http (I13)."""
        origin = origin_text(url)
        if url.userinfo or not url.host:
            raise UnsafeAddressError(f"the library names an address with a user name, or without a host ({origin})")
        if is_loopback(url.host) and not self._at_home:
            raise UnsafeAddressError(
                f"the library names an address on this machine ({origin}), where its files cannot be"
            )
        if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
            raise UnsafeAddressError(
                f"the library names an address that is not https ({origin}), over which anybody could change the file"
            )

    def send(self, request: httpx.Request, *, seconds: float, signed_in: bool = False) -> httpx.Response:
        """Return the response, its body not read yet: close it. `seconds`: how long another host than the library's may send nothing.

        `signed_in`: with a sign-in, on the library's own host. Raises the errors of httpx, and `UnsafeAddressError` for an address where no
        file can be, or if the library names too many hosts.
        """
        self._check(request.url)
        if self.is_own_host(request.url):
            return self._client.stream(request, signed_in=signed_in)
        request.extensions = {"timeout": httpx.Timeout(seconds, connect=CONNECT_SECONDS, pool=None).as_dict()}
        response = self._network(request.url).handle_request(request)
        response.request = request
        return response

    def close(self) -> None:
        """Close all connections, and wake every thread that waits for one of them."""
        with self._lock:
            self._closed = True
            networks = list(self._networks.values())
        for network in networks:
            network.close()

    def _network(self, url: httpx.URL) -> NetworkTransport:
        origin = origin_of(url)
        with self._lock:
            if origin not in self._networks:
                if len(self._networks) >= MAX_HOSTS:
                    raise UnsafeAddressError(f"the library names files on more than {MAX_HOSTS} hosts")
                self._networks[origin] = NetworkTransport(str(url.copy_with(path="/", query=None, fragment=None)))
                if self._closed:
                    self._networks[origin].close()
            return self._networks[origin]


def file_retries(clock: Clock) -> Retrying:
    """Returns what tries one file again after a `FailedTryError` that may pass, and raises the last one."""
    return retrying(
        clock.sleep,
        retry=retry_if_exception(lambda error: isinstance(error, FailedTryError) and error.may_pass),
        stop=lambda state: state.attempt_number >= TRIES or (_pause(state) or 0.0) > MAX_PAUSE,
        asked=_pause,
    )


def _pause(state: RetryCallState) -> float | None:
    error = state.outcome and state.outcome.exception()
    return error.pause if isinstance(error, FailedTryError) else None


def origin_text(address: httpx.URL | str) -> str:
    """Returns scheme and host of an address, the parts that a message may show."""
    try:
        url = url_of(address)
    except httpx.InvalidURL:
        return "an invalid address"
    port = f":{url.port}" if url.port else ""
    return outside_text(f"{url.scheme}://{url.host}{port}", 120)


_S3_ERROR = {name: re.compile(rb"<%s>([^<]{1,200})</" % name.encode()) for name in ("Code", "Message")}


def s3_error(response: httpx.Response) -> tuple[str, str]:
    """Returns code and message of an S3 error as they came, empty if there are none; the rest of the response may contain the signature."""
    start = b""
    for chunk in response.iter_raw():
        start += chunk
        if len(start) > _ERROR_BYTES:
            break
    matches = (pattern.search(start[:_ERROR_BYTES]) for pattern in _S3_ERROR.values())
    code, message = (match[1].decode(errors="replace") if match else "" for match in matches)
    return code, message
