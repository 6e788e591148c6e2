"""boto3 against the storage service: forms that it signs are accepted, changed ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import boto3
import httpx
import pytest
from botocore.client import Config

from tests.sandbox.process import SandboxProcess

pytestmark = pytest.mark.long


CONTENT = b"%PDF-1.7 as real as it gets\r\n--boundary\r\n" * 50
FIELDS = {"Content-Type": "application/pdf", "Content-Disposition": 'inline; filename="a b.pdf"'}
CONDITIONS: list[Any] = [
    {"Content-Type": "application/pdf"},
    {"Content-Disposition": 'inline; filename="a b.pdf"'},
    ["content-length-range", 1, 100_000],
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxProcess]:
    with SandboxProcess("--tenant", "library=real:100", "--requests-per-minute", "0") as running:
        yield running


@pytest.fixture
def s3(sandbox: SandboxProcess) -> Any:
    """A boto3 client with the sandbox's keys."""
    return client(sandbox, **keys(sandbox))


def keys(sandbox: SandboxProcess) -> dict[str, str]:
    storage_keys = sandbox.ready["tenants"]["library"]["storage_keys"]
    return {
        "aws_access_key_id": storage_keys["access_key_id"],
        "aws_secret_access_key": storage_keys["secret_access_key"],
    }


def client(sandbox: SandboxProcess, region: str = "us-east-1", **credentials: str) -> Any:
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 1})
    return boto3.client("s3", endpoint_url=sandbox.ready["storage"], region_name=region, config=config, **credentials)


def form(s3: Any, key: str = "cache/from-boto3.pdf", **options: Any) -> dict[str, Any]:
    settings = {"Fields": dict(FIELDS), "Conditions": list(CONDITIONS), **options}
    signed: dict[str, Any] = s3.generate_presigned_post("library", key, **settings)
    return signed


def send(signed: dict[str, Any], content: bytes = CONTENT, name: str = "a b.pdf") -> httpx.Response:
    return httpx.post(signed["url"], data=signed["fields"], files={"file": (name, BytesIO(content), "application/pdf")})


def test_a_form_that_boto3_signed_is_accepted(s3: Any) -> None:
    """service.md#upload: the storage service answers success with 204, also for a form signed by boto3."""
    answer = send(form(s3))
    assert (answer.status_code, answer.content) == (204, b"")
    place = {"Bucket": "library", "Key": "cache/from-boto3.pdf"}
    stored = httpx.get(s3.generate_presigned_url("get_object", place, ExpiresIn=60))
    assert (stored.content, stored.headers["Content-Type"]) == (CONTENT, "application/pdf")
    assert stored.headers["Content-Disposition"].startswith('inline; filename="a b.pdf"')
