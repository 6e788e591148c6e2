"""boto3 against the storage service: forms that it signs are accepted, changed ones are refused."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import boto3
import httpx
import pytest
from botocore.auth import S3SigV4PostAuth
from botocore.awsrequest import AWSRequest
from botocore.client import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from sandbox.objects.errors import S3Error
from sandbox.objects.policy import check_signature, read_policy, sign_form
from sandbox.objects.sigv4 import Keys
from tests.sandbox.process import SandboxProcess

CONTENT = b"%PDF-1.7 as real as it gets\r\n--boundary\r\n" * 50
FIELDS = {"Content-Type": "application/pdf", "Content-Disposition": 'inline; filename="a b.pdf"'}
TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
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


def code(answer: httpx.Response) -> str:
    assert answer.headers["Content-Type"] == "application/xml"
    return answer.text.partition("<Code>")[2].partition("</Code>")[0]


def test_a_form_that_boto3_signed_is_accepted(s3: Any) -> None:
    """service.md#upload: the storage service answers success with 204, also for a form signed by boto3."""
    answer = send(form(s3))
    assert (answer.status_code, answer.content) == (204, b"")
    found = s3.head_object(Bucket="library", Key="cache/from-boto3.pdf")
    assert found["ContentLength"] == len(CONTENT)
    assert found["ContentType"] == "application/pdf"
    assert found["ContentDisposition"] == FIELDS["Content-Disposition"]
    assert found["ETag"] == answer.headers["ETag"] == f'"{hashlib.md5(CONTENT).hexdigest()}"'
    assert s3.get_object(Bucket="library", Key="cache/from-boto3.pdf")["Body"].read() == CONTENT
    part = s3.get_object(Bucket="library", Key="cache/from-boto3.pdf", Range="bytes=5-9")
    assert part["Body"].read() == CONTENT[5:10]


def test_the_name_of_the_file_can_be_a_part_of_the_key(s3: Any) -> None:
    """``${filename}`` in the key: boto3 signs the part before it, and the service checks the final key."""
    assert send(form(s3, "cache/mine/${filename}")).status_code == 204
    assert s3.head_object(Bucket="library", Key="cache/mine/a b.pdf")["ContentLength"] == len(CONTENT)


def test_every_field_of_the_form_is_protected(s3: Any) -> None:
    """A form is refused if a field is changed, missing, repeated or added."""
    signed = form(s3)
    assert set(signed["fields"]) == {
        "key", "Content-Type", "Content-Disposition", "policy",
        "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature",
    }  # fmt: skip
    for name, value in signed["fields"].items():
        for wrong in (value[:-1], value + "x", value.swapcase(), ""):
            changed = {**signed, "fields": {**signed["fields"], name: wrong}}
            assert send(changed).status_code in {400, 403}, (name, wrong)
        missing = {key: each for key, each in signed["fields"].items() if key != name}
        assert send({**signed, "fields": missing}).status_code in {400, 403}, name
        assert send({**signed, "fields": {**signed["fields"], name: [value, value]}}).status_code == 400, name
    extra = send({**signed, "fields": {**signed["fields"], "acl": "public-read"}})
    assert (extra.status_code, code(extra)) == (403, "AccessDenied")
    assert "Extra input fields: acl" in extra.text
    ignored = {**signed["fields"], "x-ignore-me": "please"}
    assert send({**signed, "fields": ignored}).status_code == 204


def test_a_loosened_policy_is_not_the_one_that_was_signed(s3: Any) -> None:
    """A changed policy needs a new signature."""
    signed = form(s3)
    document = json.loads(base64.b64decode(signed["fields"]["policy"]))
    document["conditions"] = [each for each in document["conditions"] if "content-length-range" not in each]
    signed["fields"]["policy"] = base64.b64encode(json.dumps(document).encode()).decode()
    answer = send(signed)
    assert (answer.status_code, code(answer)) == (403, "SignatureDoesNotMatch")


def test_sizes_are_those_of_the_policy(s3: Any) -> None:
    """The policy limits the size with content-length-range."""
    large, small = send(form(s3), b"x" * 100_001), send(form(s3), b"")
    assert (large.status_code, code(large)) == (400, "EntityTooLarge")
    assert (small.status_code, code(small)) == (400, "EntityTooSmall")
    assert send(form(s3), b"x" * 100_000).status_code == 204


def test_keys_of_others_are_refused(sandbox: SandboxProcess) -> None:
    """Another secret, key id, region, bucket or session token is refused."""
    own = keys(sandbox)
    for credentials, expected in (
        ({**own, "aws_secret_access_key": "x"}, (403, "SignatureDoesNotMatch")),
        ({**own, "aws_access_key_id": "AKIDEXAMPLE"}, (403, "InvalidAccessKeyId")),
        ({**own, "aws_session_token": "x"}, (400, "InvalidToken")),
    ):
        answer = send(form(client(sandbox, **credentials)))
        assert (answer.status_code, code(answer)) == expected
    assert send(form(client(sandbox, region="eu-west-3", **own))).status_code == 400
    signed = client(sandbox, **own).generate_presigned_post("elsewhere", "cache/x")
    assert send({**signed, "url": signed["url"].replace("elsewhere", "library")}).status_code == 403
    assert code(send(signed)) == "NoSuchBucket"


def test_an_expired_form_is_refused(s3: Any) -> None:
    """An expired form is refused."""
    answer = send(form(s3, ExpiresIn=-1))
    assert (answer.status_code, code(answer)) == (403, "AccessDenied")
    assert "Policy expired" in answer.text


def test_addresses_that_boto3_signed_are_good(s3: Any) -> None:
    """boto3 signs addresses for GET and for HEAD, with headers of the response."""
    send(form(s3))
    place = {"Bucket": "library", "Key": "cache/from-boto3.pdf"}
    address = s3.generate_presigned_url("get_object", {**place, "ResponseContentType": "text/x-mine"}, ExpiresIn=60)
    answer = httpx.get(address)
    assert (answer.content, answer.headers["Content-Type"]) == (CONTENT, "text/x-mine")
    assert httpx.head(s3.generate_presigned_url("head_object", place)).status_code == 200
    with pytest.raises(ClientError, match="Not Found"):
        s3.head_object(Bucket="library", Key="cache/nothing")
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket="library", Key="cache/no thing ü+%2F")


def botocore_signature(credentials: Credentials, region: str, fields: dict[str, str]) -> str:
    request = AWSRequest("POST", "http://unused/", headers={"X-Amz-Date": fields["x-amz-date"]})
    request.context["timestamp"] = fields["x-amz-date"]
    signature: str = S3SigV4PostAuth(credentials, "s3", region).signature(fields["policy"], request)
    return signature


@given(secret=TEXTS, region=st.from_regex("[a-z0-9-]{1,20}", fullmatch=True), token=st.none() | TEXTS, data=st.data())
def test_any_keys_make_forms_as_botocore_does(secret: str, region: str, token: str | None, data: st.DataObject) -> None:
    """For any keys, region and session token, botocore computes the same signature."""
    own = Keys("AKID", secret, region, token)
    fields = sign_form(own, "bucket", {"key": "cache/x"}, now=1_800_000_000, seconds=60, sizes=(0, 9))
    assert botocore_signature(Credentials("AKID", secret, token), region, fields) == fields["x-amz-signature"]
    assert fields.get("x-amz-security-token") == token
    check_signature(own, fields)
    read_policy(fields["policy"]).check({**fields, "bucket": "bucket"}, 1_800_000_000)
    name = data.draw(st.sampled_from([name for name in fields if name.startswith("x-amz-")]))
    wrong = data.draw(TEXTS.filter(lambda text: text != fields[name]))
    with pytest.raises(S3Error):
        check_signature(own, {**fields, name: wrong})


def test_botocore_signs_the_service_s_own_forms_alike(sandbox: SandboxProcess) -> None:
    """Botocore computes the same signature for the forms of the service."""
    address = f"{sandbox.base_url()}/api/v2/assets/presign?filename=Ü%20b.pdf&type=application/pdf"
    fields = httpx.get(address, auth=(sandbox.user, sandbox.password)).json()["fields"]
    own = keys(sandbox)
    credentials = Credentials(own["aws_access_key_id"], own["aws_secret_access_key"])
    assert botocore_signature(credentials, "us-east-1", fields) == fields["x-amz-signature"]
    covered = [name for each in json.loads(base64.b64decode(fields["policy"]))["conditions"] for name in each]
    assert set(fields) - {"policy", "x-amz-signature"} <= set(covered)
