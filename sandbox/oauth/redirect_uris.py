"""Redirect addresses: which may be registered, and which may be requested (service.md#oauth).

Plain http needs a loopback IP literal with an explicit port. Assumptions: ``localhost`` is a name and is rejected with a port,
too; schemes other than http and https are rejected; a request names a registered address character by character, port included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, ip_address
from urllib.parse import SplitResult, urlencode, urlsplit

_CHARACTERS = re.compile(r"(?:[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_LOOPBACK = IPv4Network("127.0.0.0/8")


def redirect_uri_problem(address: str) -> str | None:
    """Returns why this address may not be registered, None if it may."""
    if "#" in address:
        return "must have no fragment"
    if not _CHARACTERS.fullmatch(address):
        return "must be an absolute address without other characters than addresses have"
    parts = _split(address)
    if parts is None or not parts.hostname:
        return "must be an absolute address with a host"
    if parts.username is not None or parts.password is not None:
        return "must have no user name"
    return _scheme_problem(parts)


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


def _scheme_problem(parts: SplitResult) -> str | None:
    if parts.scheme == "https":
        return None
    if parts.scheme != "http":
        return "must begin with https, or with http on a loopback address"
    if not _is_loopback(parts):
        return "may use http only with a loopback IP literal, 127.0.0.0/8 or [::1]"
    return "must name its port" if parts.port is None else None


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return host == "::1" if address.version == 6 else address in _LOOPBACK  # noqa: PLR2004  # IPv6


def with_parameters(address: str, answer: Iterable[tuple[str, str]]) -> str:
    """Returns the address with parameters added to its query."""
    parts = urlsplit(address)
    query = "&".join(filter(None, (parts.query, urlencode(list(answer)))))
    return parts._replace(query=query).geturl()
