"""The storage services that a library names: which addresses may be used, connections without a sign-in, what a refusal says.

Storage never sees a sign-in (I2, trap A1). Of a signed address only scheme and host are ever told (I10).
"""

from __future__ import annotations

import re
import threading

import httpx

from pipelines.service.http.network import CONNECT_SECONDS, NetworkTransport
from pipelines.service.http.transport import origin_of
from pipelines.service.redaction import outside_text
from pipelines.settings.addresses import is_loopback
from pipelines.version import VERSION

MAX_HOSTS = 64
"""Storages that one library may name."""

TRIES = 4
"""Tries of one file, with some seconds between them."""

MAX_PAUSE = 120.0
"""Seconds that a storage service may ask one file to wait."""

HEADERS = {"accept": "*/*", "accept-encoding": "identity", "user-agent": f"bookferry/{VERSION}"}
"""Headers of every request to a storage service."""

_ERROR_BYTES = 4096
"""Bytes of a refusal that are looked at."""


class UnsafeAddressError(Exception):
    """An address that the library names leads where none of its files can be."""


class StorageClient:
    """Connections to the storages of one library. Safe to use from several threads; `close` ends what is under way."""

    def __init__(self, base_url: str) -> None:
        base = httpx.URL(base_url)
        self._own = origin_of(base)
        self._at_home = is_loopback(base.host)
        self._lock = threading.Lock()
        self._networks: dict[tuple[str, bytes, int], NetworkTransport] = {}
        self._closed = False

    def is_own_host(self, url: httpx.URL) -> bool:
        """Whether it is the library's own host, where each request is charged to the budget (I1)."""
        return origin_of(url) == self._own

    def check(self, url: httpx.URL) -> None:
        """An address comes from outside (I13): it leads to no service of this machine, and nothing travels in clear."""
        shown = origin_text(url)
        if url.userinfo or not url.host:
            raise UnsafeAddressError(f"the library names an address with a user name, or without a host ({shown})")
        if is_loopback(url.host) and not self._at_home:
            raise UnsafeAddressError(
                f"the library names an address on this machine ({shown}), where its files cannot be"
            )
        if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
            raise UnsafeAddressError(
                f"the library names an address that is not https ({shown}), over which anybody could change the file"
            )

    def send(self, request: httpx.Request, *, seconds: float) -> httpx.Response:
        """The answer of somebody else's host, its body still to be read: close it. `seconds` without a single byte are too many.

        Raises what httpx raises, and `UnsafeAddressError` where the library names too many hosts.
        """
        request.extensions = {"timeout": httpx.Timeout(seconds, connect=CONNECT_SECONDS, pool=None).as_dict()}
        response = self._network(request.url).handle_request(request)
        response.request = request
        return response

    def close(self) -> None:
        """Close all connections, and wake whoever waits for one of them."""
        with self._lock:
            self._closed = True
            networks = list(self._networks.values())
        for one in networks:
            one.close()

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


def origin_text(address: httpx.URL | str) -> str:
    """Scheme and host of an address: all of it that may be told."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        return "an address that is none"
    port = f":{url.port}" if url.port else ""
    return outside_text(f"{url.scheme}://{url.host}{port}", 120)


_S3_ERROR = {name: re.compile(rb"<%s>([^<]{1,200})</" % name.encode()) for name in ("Code", "Message")}


def s3_error(response: httpx.Response) -> tuple[str, str]:
    """Code and message of an S3 refusal as they came, empty where there are none; the rest of it may show the signature."""
    begun = b""
    for chunk in response.iter_raw():
        begun += chunk
        if len(begun) > _ERROR_BYTES:
            break
    found = (pattern.search(begun[:_ERROR_BYTES]) for pattern in _S3_ERROR.values())
    code, message = (one[1].decode(errors="replace") if one else "" for one in found)
    return code, message
