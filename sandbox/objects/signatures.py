"""Signed forms and addresses, as an object store has them, with a signature of the sandbox's own.

A policy names every field that the form was given and its value, so it says what has to come back.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from sandbox.objects.errors import S3Error, access_denied, signature_does_not_match

_SIGNATURE = "X-Amz-Signature"


def sign_form(key: bytes, fields: Mapping[str, str], *, expires_at: float, most: int) -> dict[str, str]:
    """Returns the fields of a form for one file of at most so many bytes: the given ones, the policy and its signature."""
    content = json.dumps({"expires_at": expires_at, "most": most, "fields": dict(fields)})
    policy = base64.b64encode(content.encode()).decode()
    return {**fields, "policy": policy, _SIGNATURE.lower(): _signature(key, policy)}


def check_form(key: bytes, fields: Mapping[str, str], now: float) -> int:
    """Returns how many bytes the file of a form may have, or raises 403: every field has to come back verbatim.

    Names of fields are in small letters.
    """
    policy = fields.get("policy", "")
    if fields.get(_SIGNATURE.lower()) != _signature(key, policy):
        raise signature_does_not_match() if policy else access_denied()
    content: dict[str, Any] = json.loads(base64.b64decode(policy))
    if content["expires_at"] < now:
        raise _violation("Policy expired.")
    fixed = {name.lower(): value for name, value in content["fields"].items()}
    for name, value in fixed.items():
        if fields.get(name) != value:
            raise _violation(f"Policy Condition failed: {json.dumps(['eq', f'${name}', value])}")
    if extra := fields.keys() - fixed.keys() - {"policy", _SIGNATURE.lower()}:
        raise _violation(f"Extra input fields: {', '.join(sorted(extra))}")
    return int(content["most"])


def _violation(reason: str) -> S3Error:
    return access_denied(f"Invalid according to Policy: {reason}")


def sign_address(key: bytes, address: str, path: str, *, expires_at: int) -> str:
    """Returns an address at which anybody may GET an object until a time; ``path`` is what a request to it has."""
    query = {"Expires": str(expires_at), _SIGNATURE: _signature(key, f"{path}\n{expires_at}")}
    return f"{address}?{urlencode(query)}"


def check_address(key: bytes, path: str, query: Mapping[str, str], now: float) -> None:
    """Raises 403 for an address that is not signed with this key, was changed, or has expired."""
    if not {"Expires", _SIGNATURE} <= query.keys():
        raise access_denied()
    if query[_SIGNATURE] != _signature(key, f"{path}\n{query['Expires']}"):
        raise signature_does_not_match()
    if int(query["Expires"]) < now:
        raise access_denied("Request has expired")


def _signature(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
