"""Checks addresses in bookferry.toml: one spelling for each library, and nothing that would leak a sign-in."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, unquote, urlsplit


def checked_base_url(text: str) -> str:
    """Returns `https://host[:port][/path]` in one spelling for each library; http only for this machine itself."""
    if any(character.isspace() or not character.isprintable() or character == "\\" for character in text):
        raise ValueError("must not contain blanks, control characters or backslashes")
    scheme, host, port, parts = _split_address(text)
    if scheme not in _PORTS or not host:
        raise ValueError("must be an address such as https://library.example.org")
    if "@" in parts.netloc:
        raise ValueError(
            "must not have a user name or a password in it; name the variables that hold them in username_env and password_env"
        )
    if "?" in text or "#" in text:
        raise ValueError("must not contain a query or a fragment")
    path = parts.path.rstrip("/")
    if re.search(r"/api(/v\d+(/.*)?)?$", path):
        raise ValueError("must stop before /api: Bookferry adds /api/v2 or /api/v3 itself")
    if {".", ".."} & set(unquote(path).split("/")) or "//" in path or "%" in host:
        raise ValueError("must not contain `.`, `..` or `//` in its path, nor % in its host")
    if scheme == "http" and not is_loopback(host):
        raise ValueError("would send your credentials unencrypted: use https (http is for loopback addresses only)")
    written_host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{written_host}{'' if port in (None, _PORTS[scheme]) else f':{port}'}{path}"


def library_key(base_url: str) -> str:
    """Returns what two addresses of one library have in common: its records have the same ids, and its budget is one, in both versions."""
    return base_url.rstrip("/").lower()


_PORTS = {"http": 80, "https": 443}


def _split_address(address: str) -> tuple[str, str, int | None, SplitResult]:
    """Returns scheme, host and port in lower case, and the other parts. urlsplit's own message would show a password in the address."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise ValueError(
            "must be an address such as https://library.example.org or https://library.example.org:8443"
        ) from None
    return parts.scheme, parts.hostname or "", port, parts


SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "azure": "az"}
"""Schemes of a bucket's address → the spelling that Bookferry uses."""


def checked_bucket(text: str) -> str:
    """Returns `s3://bucket/prefix` in one spelling; the prefix has only characters that every store and DuckDB accept unescaped."""
    scheme, _, rest = text.partition("://")
    if scheme not in SCHEMES:
        raise ValueError(
            f"names a place of an unknown kind ({scheme}://): use a folder, or s3://, gs:// or az://BUCKET/PREFIX"
        )
    if "@" in rest:
        raise ValueError(
            "must not have a user name or a password in it; the environment holds the credentials of the bucket"
        )
    bucket, _, prefix = rest.partition("/")
    if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,62}", bucket):
        raise ValueError(f"names no bucket: write {SCHEMES[scheme]}://BUCKET or {SCHEMES[scheme]}://BUCKET/PREFIX")
    parts = [part for part in prefix.split("/") if part]
    if any(part in (".", "..") or not re.fullmatch(r"[A-Za-z0-9._=+@-]+", part) for part in parts):
        raise ValueError("has a prefix with other characters than letters, digits and . _ = + @ -")
    return "/".join((f"{SCHEMES[scheme]}://{bucket}", *parts))


def is_loopback(host: str) -> bool:
    """Whether a request to this host stays on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _plain_address(address: str) -> tuple[str, str, int | None]:
    """Returns scheme, host and port of an address that has nothing unusual."""
    scheme, host, port, parts = _split_address(address)
    if not address.isascii() or not address.isprintable() or " " in address or "#" in address or "@" in parts.netloc:
        raise ValueError("must be an address without blanks, user name and #")
    return scheme, host, port


def checked_redirect_uri(address: str) -> str:
    """Returns a redirect address: plain http only for loopback IP literals with an explicit port (service.md#oauth)."""
    scheme, host, port = _plain_address(address)
    loopback = scheme == "http" and host != "localhost" and is_loopback(host) and port
    if not host or not (scheme == "https" or loopback):
        raise ValueError(
            "must be https://..., or http://127.0.0.1:PORT/... with its port (`localhost` is refused by the service)"
        )
    return address


def checked_hook_address(address: str) -> str:
    """Returns the address for reports about runs; http only on this machine. Its knowledge is the right to report: no message shows it."""
    scheme, host, _port = _plain_address(address)
    if scheme not in _PORTS or not host:
        raise ValueError("must be an address such as https://monitoring.example.org/...")
    if scheme == "http" and not is_loopback(host):
        raise ValueError("must be https://...: plain http is for loopback addresses only")
    return address


def checked_record_url(text: str) -> str:
    """Returns the address of a record's page, with `{id}` once for its number. It is only displayed, so that plain http is no danger."""
    if not re.fullmatch(r"[!#-;=?-\[\]-~]+", text):
        raise ValueError(
            "must not contain blanks, control characters, quotation marks, <, > or backslashes, nor letters outside ASCII"
        )
    scheme, host, _port, parts = _split_address(text)
    if scheme not in _PORTS or not host or "@" in parts.netloc or "{" in parts.netloc:
        raise ValueError(
            "must be an address such as https://library.example.org/publications/{id}, without a user name"
        )
    if text.count("{id}") != 1 or set("{}") & set(text.replace("{id}", "")):
        raise ValueError("must have {id} once, in the place of the record's number, and no other braces")
    return text
