"""What the storage service refuses although the right keys signed it, as Amazon S3 does. boto3 checks the signatures themselves."""

from __future__ import annotations

import hashlib
from urllib.parse import parse_qsl, urlsplit

import pytest

from sandbox.objects.errors import S3Error
from sandbox.objects.sigv4 import (
    UNSIGNED,
    Keys,
    SignableRequest,
    amz_date,
    check_headers,
    check_presigned_url,
    presigned_url,
    signed_headers,
)

KEYS = Keys("AKIDEXAMPLE", "secret")
NOW = 1_800_000_000.0
MINUTES, DAYS = 60, 24 * 3600
ADDRESS = "http://storage.test/library/store/a"
HEADERS = {"host": "storage.test", "x-note": "n"}


def signed_again(query: dict[str, str], names: list[str]) -> SignableRequest:
    """Returns a GET with this query, signed with the right keys for the time that the query names."""
    query = {name: value for name, value in query.items() if name != "X-Amz-Signature"}
    at, path = query["X-Amz-Date"], urlsplit(ADDRESS).path
    canonical = SignableRequest("GET", path, tuple(query.items()), HEADERS).canonical(names, UNSIGNED)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signature = KEYS.sign(at[:8], f"AWS4-HMAC-SHA256\n{at}\n{KEYS.scope(at[:8])}\n{digest}")
    return SignableRequest("GET", path, (*query.items(), ("X-Amz-Signature", signature)), HEADERS)


def presigned(**changed: str) -> SignableRequest:
    """Returns a good signed address; ``changed`` replaces parameters before it is signed."""
    query = dict(parse_qsl(urlsplit(presigned_url(KEYS, ADDRESS, NOW, 900)).query))
    query |= {f"X-Amz-{name}": value for name, value in changed.items()}
    return signed_again(query, query["X-Amz-SignedHeaders"].split(";"))


def outcome(request: SignableRequest, now: float = NOW) -> str:
    """Returns the code of the refusal, or "accepted"."""
    try:
        check_presigned_url(KEYS, request, now, methods=["GET"])
    except S3Error as refused:
        return refused.code
    return "accepted"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "accepted"), ({"SignedHeaders": "host;x-note"}, "accepted"), ({"Expires": str(7 * DAYS)}, "accepted"),
        ({"Expires": str(7 * DAYS + 1)}, "AuthorizationQueryParametersError"), ({"Expires": "0"}, "AuthorizationQueryParametersError"),
        ({"SignedHeaders": "x-note"}, "AuthorizationQueryParametersError"),
        ({"Date": amz_date(NOW + 15 * MINUTES), "Credential": KEYS.credential(amz_date(NOW)[:8])}, "accepted"),
        ({"Date": amz_date(NOW + 15 * MINUTES + 1), "Credential": KEYS.credential(amz_date(NOW)[:8])}, "AccessDenied"),
        ({"Credential": KEYS.credential(amz_date(NOW - DAYS)[:8])}, "InvalidArgument"),
        ({"Credential": KEYS.credential(amz_date(NOW)[:8]).replace("us-east-1", "eu-west-3")}, "InvalidArgument"),
        ({"Credential": KEYS.credential(amz_date(NOW)[:8]).replace("/s3/", "/iam/")}, "InvalidArgument"),
        ({"Credential": KEYS.credential(amz_date(NOW)[:8]).replace("AKID", "AKIX")}, "InvalidAccessKeyId"),
        ({"Security-Token": "x"}, "InvalidToken"),
    ],
)  # fmt: skip
def test_a_signed_address_has_to_be_in_order(changed: dict[str, str], expected: str) -> None:
    assert outcome(presigned(**changed)) == expected


def header_outcome(headers: dict[str, str], now: float = NOW) -> str:
    """Returns the code of the refusal of a request with these headers, or "accepted"."""
    try:
        check_headers(KEYS, SignableRequest("GET", urlsplit(ADDRESS).path, (), headers), now)
    except S3Error as refused:
        return refused.code
    return "accepted"


def test_a_signature_in_headers_is_fresh_and_covers_every_amazon_header() -> None:
    signed = signed_headers(KEYS, "GET", ADDRESS, NOW)
    times = [header_outcome(signed, NOW + shift * MINUTES) for shift in (-16, -15, 15, 16)]
    assert times == ["RequestTimeTooSkewed", "accepted", "accepted", "RequestTimeTooSkewed"]
    assert header_outcome({**signed, "x-amz-acl": "public-read"}) == "SignatureDoesNotMatch"
    assert header_outcome({**signed, "host": "other.test"}) == "SignatureDoesNotMatch"
    assert header_outcome({**signed, "accept": "*/*"}) == "accepted"
