"""AWS Signature Version 4 for the service ``s3``: POST policies, addresses, and requests with an Authorization header.

Written from AWS' description with ``hmac`` alone. Signing and checking share their functions; boto3 proves them in tests/interop.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote, urlsplit

from sandbox.objects.errors import (
    S3Error,
    access_denied,
    invalid_access_key,
    invalid_argument,
    invalid_token,
    signature_does_not_match,
)

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"

_SERVICE = "s3"
_ENDING = "aws4_request"
_MAX_SECONDS = 7 * 24 * 3600
_MAX_DIGITS = 6
_SKEW = timedelta(minutes=15)
_CREDENTIAL = re.compile(
    r"(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/(?P<ending>[^/]+)", re.ASCII
)
_AUTHORIZATION = re.compile(
    rf"{ALGORITHM}\s+Credential=(?P<credential>[^,\s]+),\s*SignedHeaders=(?P<headers>[^,\s]+),\s*Signature=(?P<signature>\w+)",
    re.ASCII,
)
_QUERY = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a bucket. ``session_token`` belongs to temporary keys."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    region: str = "us-east-1"
    session_token: str | None = field(default=None, repr=False)

    def scope(self, day: str) -> str:
        """Returns the scope of a signature of this day."""
        return f"{day}/{self.region}/{_SERVICE}/{_ENDING}"

    def credential(self, day: str) -> str:
        """Returns key id and scope."""
        return f"{self.access_key_id}/{self.scope(day)}"

    def sign(self, day: str, text: str) -> str:
        """Returns the signature of a text in hexadecimal digits."""
        key = f"AWS4{self.secret_access_key}".encode()
        for part in (day, self.region, _SERVICE, _ENDING):
            key = _hmac(key, part)
        return _hmac(key, text).hex()

    def check(self, credential: str, at: str) -> str:
        """Returns the day of a credential, or raises: it has to be of this key, region and date."""
        parts = _CREDENTIAL.fullmatch(credential)
        if parts is None:
            raise invalid_argument("The credential is mal-formed", "X-Amz-Credential", credential)
        if parts["key"] != self.access_key_id:
            raise invalid_access_key(parts["key"])
        if credential != self.credential(parts["day"]) or not at.startswith(parts["day"]):
            raise invalid_argument(
                "The credential is for another date, region or service", "X-Amz-Credential", credential
            )
        return parts["day"]

    def check_token(self, token: str | None) -> None:
        """Raises for a security token other than that of these keys."""
        if token is None and self.session_token is None:
            return
        if token is None or self.session_token is None or not _equal(token, self.session_token):
            raise invalid_token()


@dataclass(frozen=True, slots=True)
class SignableRequest:
    """The signed parts of a request. ``headers`` in small letters; ``path`` and ``query`` decoded."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]

    def canonical(self, signed: Iterable[str], payload_hash: str) -> str:
        """Returns the canonical form of the request."""
        names = sorted(signed)
        query = sorted((_encoded(name), _encoded(value)) for name, value in self.query)
        lines = [
            self.method,
            quote(self.path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{' '.join(self.headers.get(name, '').split())}" for name in names),
            "",
            ";".join(names),
            payload_hash,
        ]
        return "\n".join(lines)


def amz_date(now: float) -> str:
    """Returns a time in the format of signatures."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")


def presigned_url(keys: Keys, address: str, now: float, seconds: int) -> str:
    """Returns an address at which anybody may GET an object for `seconds`."""
    at = amz_date(now)
    parts = urlsplit(address)
    parameters = {
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": keys.credential(at[:8]),
        "X-Amz-Date": at,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
        **({"X-Amz-Security-Token": keys.session_token} if keys.session_token else {}),
    }
    request = SignableRequest("GET", unquote(parts.path), tuple(parameters.items()), {"host": parts.netloc})
    signature = _signature(keys, at, request.canonical(["host"], UNSIGNED))
    query = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in parameters.items())
    return f"{address}?{query}&X-Amz-Signature={signature}"


def signed_headers(keys: Keys, method: str, address: str, now: float) -> dict[str, str]:
    """Returns the headers that sign a request without query and body."""
    at = amz_date(now)
    parts = urlsplit(address)
    headers = {"host": parts.netloc, "x-amz-content-sha256": hashlib.sha256(b"").hexdigest(), "x-amz-date": at}
    if keys.session_token:
        headers["x-amz-security-token"] = keys.session_token
    request = SignableRequest(method, unquote(parts.path), (), headers)
    canonical = request.canonical(headers, headers["x-amz-content-sha256"])
    names = ";".join(sorted(headers))
    signature = _signature(keys, at, canonical)
    authorization = f"{ALGORITHM} Credential={keys.credential(at[:8])}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": authorization}


def check_presigned_url(keys: Keys, request: SignableRequest, now: float, *, methods: Iterable[str]) -> None:
    """Raises for an address that is not signed with these keys, was changed, or has expired.

    ``methods``: the methods for which it may be signed; a signature is for one method.
    """
    query = dict(request.query)
    if not any(name in query for name in _QUERY):
        raise access_denied()
    if len(query) != len(request.query) or any(name not in query for name in _QUERY) or query[_QUERY[0]] != ALGORITHM:
        raise _bad_query(f"Query-string authentication version 4 requires the parameters {', '.join(_QUERY)}")
    at, seconds = query["X-Amz-Date"], query["X-Amz-Expires"]
    signed_at = _time(at)
    if signed_at is None or not (
        seconds.isascii() and seconds.isdigit() and len(seconds) <= _MAX_DIGITS and 0 < int(seconds) <= _MAX_SECONDS
    ):
        raise _bad_query("X-Amz-Date or X-Amz-Expires is no date or no number from 1 to 604800")
    keys.check(query["X-Amz-Credential"], at)
    keys.check_token(query.get("X-Amz-Security-Token"))
    signature = query["X-Amz-Signature"]
    signed = query["X-Amz-SignedHeaders"].split(";")
    if "host" not in signed:
        raise _bad_query("The header host has to be signed")
    rest = tuple(pair for pair in request.query if pair[0] != "X-Amz-Signature")
    candidates = [SignableRequest(method, request.path, rest, request.headers) for method in methods]
    if not any(_equal(_signature(keys, at, each.canonical(signed, UNSIGNED)), signature) for each in candidates):
        raise signature_does_not_match()
    if signed_at - _SKEW > _moment(now):
        raise access_denied("Request is not valid yet")
    if signed_at + timedelta(seconds=int(seconds)) < _moment(now):
        raise access_denied("Request has expired")


def check_headers(keys: Keys, request: SignableRequest, now: float) -> None:
    """Raises for a request whose Authorization header is not a fresh signature of these keys."""
    authorization = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if authorization is None:
        raise invalid_argument("Unsupported Authorization Type", "Authorization")
    at = request.headers.get("x-amz-date", "")
    signed_at = _time(at)
    if signed_at is None:
        raise access_denied("AWS authentication requires a valid Date or x-amz-date header")
    if abs(signed_at - _moment(now)) > _SKEW:
        message = "The difference between the request time and the current time is too large."
        raise S3Error(403, "RequestTimeTooSkewed", message)
    keys.check(authorization["credential"], at)
    keys.check_token(request.headers.get("x-amz-security-token"))
    names = authorization["headers"].split(";")
    must = {"host", *(name for name in request.headers if name.startswith("x-amz-"))}
    canonical = request.canonical(names, request.headers.get("x-amz-content-sha256", ""))
    if must - set(names) or not _equal(_signature(keys, at, canonical), authorization["signature"]):
        raise signature_does_not_match()


def _signature(keys: Keys, at: str, canonical: str) -> str:
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
    return keys.sign(at[:8], f"{ALGORITHM}\n{at}\n{keys.scope(at[:8])}\n{digest}")


def _time(text: str) -> datetime | None:
    """Parses ``YYYYMMDDTHHMMSSZ``."""
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _moment(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC)


def _bad_query(message: str) -> S3Error:
    return S3Error(400, "AuthorizationQueryParametersError", message)


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).digest()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
