"""An external object store for uploads: S3 or a compatible one, path-style."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import quote, urlsplit

from werkzeug.http import parse_options_header

from sandbox.objects.sigv4 import Keys, signed_headers

_SECONDS = 30
_OK = 200
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """The result of a HEAD."""

    size: int
    content_type: str | None
    filename: str | None


@dataclass(frozen=True, slots=True)
class ExternalStore:
    """A bucket at an endpoint, and its keys."""

    endpoint: str
    bucket: str
    keys: Keys

    @property
    def address(self) -> str:
        """The address for forms."""
        return f"{self.endpoint.rstrip('/')}/{quote(self.bucket)}"

    def object_address(self, key: str) -> str:
        """Returns the address of an object."""
        return f"{self.address}/{quote(key)}"

    def head(self, key: str, now: float) -> ObjectInfo | None:
        """Returns size, type and name of an object, None if it is missing. Any other response raises ``OSError``."""
        address = self.object_address(key)
        parts = urlsplit(address)
        connection_type = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = connection_type(parts.hostname or "", parts.port, timeout=_SECONDS)
        try:
            connection.request("HEAD", parts.path, headers=signed_headers(self.keys, "HEAD", address, now))
            answer = connection.getresponse()
            if answer.status == _NOT_FOUND:
                return None
            if answer.status != _OK:
                raise OSError(f"HEAD {address} was answered {answer.status} {answer.reason}")
            _, options = parse_options_header(answer.headers.get("Content-Disposition", ""))
            size = int(answer.headers.get("Content-Length", "0"))
            return ObjectInfo(size, answer.headers.get("Content-Type"), options.get("filename"))
        finally:
            connection.close()
