"""Signed forms and addresses, as AWS Signature Version 4 and "Creating a POST policy" of Amazon S3 describe them.

A policy names every field that the form was given and its value, so it says what has to come back. An address is signed as a GET.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote, urlencode, urlsplit

from sandbox.objects.errors import S3Error, access_denied, signature_does_not_match

_ALGORITHM = "AWS4-HMAC-SHA256"
_RANGE = "content-length-range"
_TIME = "%Y%m%dT%H%M%SZ"
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
    """The keys of a bucket."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    region: str = "us-east-1"

    def scope(self, day: str) -> str:
        """Returns the scope of a signature of this day, ``YYYYMMDD``."""
        return f"{day}/{self.region}/s3/aws4_request"

    def signature(self, day: str, text: str) -> str:
        """Returns the signature of a text in hexadecimal digits."""
        key = f"AWS4{self.secret_access_key}".encode()
        for part in (*self.scope(day).split("/"), text):
            key = hmac.new(key, part.encode("utf-8", "surrogateescape"), hashlib.sha256).digest()
        return key.hex()

    def signing_fields(self, now: float) -> dict[str, str]:
        """Returns algorithm, credential and time of a signature."""
        at = datetime.fromtimestamp(now, UTC).strftime(_TIME)
        credential = f"{self.access_key_id}/{self.scope(at[:8])}"
        return {"x-amz-algorithm": _ALGORITHM, "x-amz-credential": credential, "x-amz-date": at}


@dataclass(frozen=True, slots=True)
class Policy:
    """What a form has to have: its fields, with names in small letters, and the bounds of its file's size in bytes."""

    fields: Mapping[str, str]
    least: int
    most: int


def sign_form(
    keys: Keys, bucket: str, fields: Mapping[str, str], *, now: float, seconds: int, sizes: tuple[int, int]
) -> dict[str, str]:
    """Returns the fields of a form for one file: the given ones and the signature. ``sizes``: least and most bytes of the file."""
    fixed = {**fields, **keys.signing_fields(now)}
    conditions: list[object] = [{"bucket": bucket}, *({name: value} for name, value in fixed.items()), [_RANGE, *sizes]]
    expiration = datetime.fromtimestamp(now + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    document = json.dumps({"expiration": expiration, "conditions": conditions}, ensure_ascii=False)
    policy = base64.b64encode(document.encode()).decode()
    return {**fixed, "policy": policy, "x-amz-signature": keys.signature(fixed["x-amz-date"][:8], policy)}


def check_form(keys: Keys, bucket: str, fields: Mapping[str, str], now: float) -> Policy:
    """Returns the policy of a form, or raises 403: it has to be signed with these keys, and every field has to come back verbatim."""
    signature = keys.signature(fields.get("x-amz-date", "")[:8], fields.get("policy", ""))
    if fields.get("x-amz-signature") != signature:
        raise signature_does_not_match() if "policy" in fields else access_denied()
    expiration, policy = _read_policy(fields["policy"])
    if expiration < datetime.fromtimestamp(now, UTC):
        raise _violation("Policy expired.")
    form = {**fields, "bucket": bucket}
    for name, value in policy.fields.items():
        if form.get(name) != value:
            raise _violation(f"Policy Condition failed: {json.dumps(['eq', f'${name}', value])}")
    if extra := form.keys() - policy.fields.keys() - {"policy", "x-amz-signature"}:
        raise _violation(f"Extra input fields: {', '.join(sorted(extra))}")
    return policy


def _read_policy(encoded: str) -> tuple[datetime, Policy]:
    """Returns the expiration and the content of a policy. It is signed, so that whoever has the keys wrote it."""
    document = json.loads(base64.b64decode(encoded))
    fields: dict[str, str] = {}
    least, most = 0, 5 * 1024**3
    for condition in document["conditions"]:
        if isinstance(condition, dict):
            fields |= {name.lower(): value for name, value in condition.items()}
        elif condition[0] == _RANGE:
            _, least, most = condition
        else:
            raise S3Error(400, "InvalidPolicyDocument", f"Invalid Policy: Invalid Condition: {json.dumps(condition)}")
    return datetime.fromisoformat(document["expiration"]), Policy(fields, least, most)


def _violation(reason: str) -> S3Error:
    return access_denied(f"Invalid according to Policy: {reason}")


def sign_address(keys: Keys, address: str, *, now: float, seconds: int) -> str:
    """Returns an address at which anybody may GET an object for `seconds`."""
    parts, signing = urlsplit(address), keys.signing_fields(now)
    values = (*signing.values(), str(seconds), "host")
    query = dict(zip(_QUERY, values, strict=False))
    signature = _address_signature(keys, unquote(parts.path), query, parts.netloc)
    return f"{address}?{urlencode({**query, 'X-Amz-Signature': signature}, quote_via=quote)}"


def check_address(keys: Keys, path: str, query: Mapping[str, str], host: str, now: float) -> None:
    """Raises 403 for an address that is not signed with these keys, was changed, or has expired."""
    if any(name not in query for name in _QUERY):
        raise access_denied()
    signed = {name: value for name, value in query.items() if name != "X-Amz-Signature"}
    if query["X-Amz-Signature"] != _address_signature(keys, path, signed, host):
        raise signature_does_not_match()
    signed_at = datetime.strptime(query["X-Amz-Date"], _TIME).replace(tzinfo=UTC)
    if signed_at + timedelta(seconds=int(query["X-Amz-Expires"])) < datetime.fromtimestamp(now, UTC):
        raise access_denied("Request has expired")


def _address_signature(keys: Keys, path: str, query: Mapping[str, str], host: str) -> str:
    """Returns the signature of a GET that signs its host."""
    encoded = urlencode(sorted(query.items()), quote_via=quote, safe="-_.~")
    canonical = f"GET\n{quote(path)}\n{encoded}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    at, digest = query["X-Amz-Date"], hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
    return keys.signature(at[:8], f"{_ALGORITHM}\n{at}\n{keys.scope(at[:8])}\n{digest}")
