"""Checks addresses in bookferry.toml: one spelling for each library, and nothing that would leak a sign-in."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, unquote, urlsplit


def checked_base_url(text: str) -> str:
    """Returns `https://host[:port][/path]` in one spelling for each library; http only for this machine itself."""
    parts = _web_address(text)
    host, path = parts.hostname or "", parts.path.rstrip("/")
    if "?" in text or "#" in text:
        raise ValueError("must not contain a query or a fragment")
    if re.search(r"/api(/v\d+(/.*)?)?$", path):
        raise ValueError("must stop before /api: Bookferry adds /api/v2 or /api/v3 itself")
    if {".", ".."} & set(unquote(path).split("/")) or "//" in path or "%" in host:
        raise ValueError("must not contain `.`, `..` or `//` in its path, nor % in its host")
    if not _keeps_secrets(parts):
        raise ValueError("would send your credentials unencrypted: use https (http is for loopback addresses only)")
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{path}"


def library_key(base_url: str) -> str:
    """Returns what two addresses of one library have in common: its records have the same ids, and its budget is one, in both versions."""
    return base_url.rstrip("/").lower()


_PORTS = {"http": 80, "https": 443}


def _web_address(text: str) -> SplitResult:
    """Returns the parts of an address of the web that has a host, and nothing in which a secret is. No message shows a part of it."""
    if any(character.isspace() or not character.isprintable() or character == "\\" for character in text):
        raise ValueError("must not contain blanks, control characters or backslashes")
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in _PORTS and parts.hostname and parts.port != 0
    except ValueError:  # its own message would show a password in the address
        is_whole = False
    if not is_whole:
        raise ValueError("must be an address such as https://library.example.org or https://library.example.org:8443")
    if "@" in parts.netloc:
        raise ValueError(
            "must not have a user name or a password in it: username_env and password_env name the variables that have those of a library"
        )
    return parts


def _keeps_secrets(parts: SplitResult) -> bool:
    """Whether nobody can read on the way what is sent to an address."""
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


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


def checked_redirect_uri(address: str) -> str:
    """Returns a redirect address: plain http only for loopback IP literals with an explicit port (service.md#oauth)."""
    parts = _web_address(address)
    is_local = _keeps_secrets(parts) and parts.hostname != "localhost" and parts.port
    if "#" in address or not (parts.scheme == "https" or is_local):
        raise ValueError(
            "must be https://..., or http://127.0.0.1:PORT/... with its port (`localhost` is refused by the service), without a #"
        )
    return address


def checked_hook_address(address: str) -> str:
    """Returns the address for reports about runs; http only on this machine. Its knowledge is the right to report: no message shows it."""
    if not _keeps_secrets(_web_address(address)):
        raise ValueError("must be https://...: plain http is for loopback addresses only")
    return address


def checked_record_url(text: str) -> str:
    """Returns the address of a record's page, with `{id}` once for its number. It is only displayed, so that plain http is no danger."""
    if not re.fullmatch(r"[!#-;=?-\[\]-~]+", text):
        raise ValueError(
            "must not contain blanks, control characters, quotation marks, <, > or backslashes, nor letters outside ASCII"
        )
    if "{" in _web_address(text).netloc:
        raise ValueError("must be an address such as https://library.example.org/publications/{id}")
    if text.count("{id}") != 1 or set("{}") & set(text.replace("{id}", "")):
        raise ValueError("must have {id} once, in the place of the record's number, and no other braces")
    return text
