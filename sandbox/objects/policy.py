"""POST policies as in "Creating a POST policy" of Amazon S3's API reference.

Every field of the form needs a condition, except ``policy``, ``x-amz-signature``, ``file`` and names that begin with
``x-ignore-``. Every condition has to be met. Names of fields are compared without case.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sandbox.objects.errors import S3Error, access_denied, invalid_argument, signature_does_not_match
from sandbox.objects.sigv4 import ALGORITHM, Keys, amz_date

_UNCOVERED = {"policy", "x-amz-signature", "file"}
_IGNORED = "x-ignore-"
_SIGNATURE_FIELDS = ("policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature")
_RANGE = "content-length-range"
_CONDITION_LENGTH = 3


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition. ``field`` is in small letters; ``source`` is the condition as in the policy."""

    kind: str
    field: str
    value: str
    source: object

    def is_met(self, form: Mapping[str, str]) -> bool:
        """Returns whether the form meets the condition. A missing field never does, not even an empty prefix."""
        value = form.get(self.field)
        if value is None:
            return False
        if self.kind == "eq":
            return value == self.value
        values = re.split(r",\s*", value) if self.field == "content-type" else [value]
        return all(each.startswith(self.value) for each in values)


@dataclass(frozen=True, slots=True)
class Policy:
    """A parsed policy. ``min_size`` and ``max_size`` limit the file, in bytes."""

    expires: datetime
    conditions: tuple[Condition, ...]
    min_size: int = 0
    max_size: int | None = None

    def check(self, form: Mapping[str, str], now: float) -> None:
        """Raises for a form that the policy does not allow. Sizes are checked while the file arrives."""
        if self.expires < datetime.fromtimestamp(now, UTC):
            raise _policy_violation("Policy expired.")
        for condition in self.conditions:
            if not condition.is_met(form):
                raise _policy_violation(f"Policy Condition failed: {json.dumps(condition.source)}")
        covered = {condition.field for condition in self.conditions}
        extra = [name for name in form if name not in covered | _UNCOVERED and not name.startswith(_IGNORED)]
        if extra:
            raise _policy_violation(f"Extra input fields: {', '.join(sorted(extra))}")

    def check_max_size(self, size: int) -> None:
        """Raises as soon as the file has too many bytes."""
        if self.max_size is not None and size > self.max_size:
            message = "Your proposed upload exceeds the maximum allowed size"
            raise S3Error(400, "EntityTooLarge", message, {"ProposedSize": size, "MaxSizeAllowed": self.max_size})

    def check_min_size(self, size: int) -> None:
        """Raises if the file has too few bytes."""
        if size < self.min_size:
            message = "Your proposed upload is smaller than the minimum allowed size"
            raise S3Error(400, "EntityTooSmall", message, {"ProposedSize": size, "MinSizeAllowed": self.min_size})


def sign_form(
    keys: Keys, bucket: str, fields: Mapping[str, str], *, now: float, seconds: int, sizes: tuple[int, int]
) -> dict[str, str]:
    """Returns the fields of a form for one file: the given ones with fixed values, and the signature."""
    at = amz_date(now)
    fixed = {
        **fields,
        "x-amz-algorithm": ALGORITHM,
        "x-amz-credential": keys.credential(at[:8]),
        "x-amz-date": at,
        **({"x-amz-security-token": keys.session_token} if keys.session_token else {}),
    }
    conditions: list[object] = [{"bucket": bucket}, *({name: value} for name, value in fixed.items())]
    expiration = datetime.fromtimestamp(now + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    document = {"expiration": expiration, "conditions": [*conditions, [_RANGE, *sizes]]}
    policy = base64.b64encode(json.dumps(document, ensure_ascii=False).encode()).decode()
    return {**fixed, "policy": policy, "x-amz-signature": keys.sign(at[:8], policy)}


def check_signature(keys: Keys, form: Mapping[str, str]) -> None:
    """Raises if the form is not signed with these keys."""
    if "policy" not in form:
        raise access_denied()
    for name in _SIGNATURE_FIELDS:
        if name not in form:
            raise invalid_argument(f"Bucket POST must contain a field named '{name}'.", name)
    if form["x-amz-algorithm"] != ALGORITHM:
        raise invalid_argument(f"X-Amz-Algorithm only supports {ALGORITHM}", "x-amz-algorithm", form["x-amz-algorithm"])
    day = keys.check(form["x-amz-credential"], form["x-amz-date"])
    keys.check_token(form.get("x-amz-security-token"))
    signature = keys.sign(day, form["policy"])
    if not hmac.compare_digest(signature.encode(), form["x-amz-signature"].encode("utf-8", "replace")):
        raise signature_does_not_match()


def read_policy(encoded: str) -> Policy:
    """Parses the policy of a form, or raises 400."""
    try:
        document = json.loads(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise _invalid_policy("Invalid JSON.") from None
    if not isinstance(document, dict) or not {"expiration", "conditions"} == set(document):
        raise _invalid_policy("Policy must contain 'expiration' and 'conditions' and nothing else.")
    if not isinstance(document["conditions"], list):
        raise _invalid_policy("Invalid 'conditions' value: must be a List.")
    return _policy(_expiration(document["expiration"]), document["conditions"])


def _policy(expires: datetime, written: list[Any]) -> Policy:
    least, most = 0, None
    conditions: list[Condition] = []
    for each in written:
        if isinstance(each, list) and each[:1] == [_RANGE]:
            least, most = _sizes(each)
        else:
            conditions.extend(_conditions(each))
    return Policy(expires, tuple(conditions), least, most)


def _expiration(value: Any) -> datetime:
    try:
        expires = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _invalid_policy("Invalid 'expiration' value.") from None
    if expires.tzinfo is None:
        raise _invalid_policy("Invalid 'expiration' value.")
    return expires


def _conditions(written: Any) -> Iterator[Condition]:
    if isinstance(written, dict) and written and all(isinstance(value, str) for value in written.values()):
        for name, value in written.items():
            yield Condition("eq", name.lower(), value, ["eq", f"${name}", value])
    elif _is_condition_list(written):
        kind, name, value = written
        yield Condition(kind.lower(), name[1:].lower(), value, written)
    else:
        raise _invalid_policy(f"Invalid Condition: {json.dumps(written)}")


def _is_condition_list(written: Any) -> bool:
    return (
        isinstance(written, list)
        and len(written) == _CONDITION_LENGTH
        and all(isinstance(each, str) for each in written)
        and written[0].lower() in {"eq", "starts-with"}
        and written[1].startswith("$")
    )


def _sizes(written: list[Any]) -> tuple[int, int]:
    try:
        _, least, most = written
        sizes = int(least), int(most)
    except (TypeError, ValueError):
        raise _invalid_policy(f"Invalid {_RANGE}") from None
    if not 0 <= sizes[0] <= sizes[1]:
        raise _invalid_policy(f"Invalid {_RANGE}: {written}")
    return sizes


def _policy_violation(why: str) -> S3Error:
    return access_denied(f"Invalid according to Policy: {why}")


def _invalid_policy(why: str) -> S3Error:
    return S3Error(400, "InvalidPolicyDocument", f"Invalid Policy: {why}")
