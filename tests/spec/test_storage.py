"""service.md#upload: the upload sequence; the storage service enforces it as Amazon S3 does."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spec.conftest import Library
from tests.spec.uploads import BOUNDARY, CONTENT, body_of, code, fetch, presigned, send, upload


def post(library: Library, fields: dict[str, str], content: bytes | None = CONTENT) -> httpx.Response:
    """Posts a form to the bucket."""
    return send(library, library.tenant.storage.address(library.base_url), body_of(list(fields.items()), content))


def test_every_field_has_to_be_sent_back_verbatim(library: Library) -> None:
    """service.md#upload: every field is sent back verbatim."""
    fields = presigned(library.v3())["fields"]
    for name, value in fields.items():
        for wrong in (value + "0", value[1:], value.upper() if value.upper() != value else value.lower(), " " + value):
            assert post(library, {**fields, name: wrong}).status_code in {400, 403}, (name, wrong)
        incomplete = {key: text for key, text in fields.items() if key != name}
        assert post(library, incomplete).status_code in {400, 403}, name
    assert library.tenant.blobs.find(fields["key"]) is None
    assert post(library, fields).status_code == 204


def test_the_file_comes_last(library: Library) -> None:
    """service.md#upload: the `file` part is the last part of the body."""
    form = presigned(library.v3())
    fields = list(form["fields"].items())
    after = send(library, form["url"], body_of(fields, after=[("more", "1")]))
    assert (after.status_code, code(after)) == (400, "MalformedPOSTRequest")
    for number, moved in enumerate(fields):
        answer = send(library, form["url"], body_of(fields[:number] + fields[number + 1 :], after=[moved]))
        assert answer.status_code in {400, 403}, moved
    first = send(library, form["url"], body_of([], after=fields))
    assert (first.status_code, code(first)) == (400, "MalformedPOSTRequest")
    twice = body_of(fields).replace(f"--{BOUNDARY}--".encode(), body_of([]))
    assert code(send(library, form["url"], twice)) == "MalformedPOSTRequest"
    assert library.tenant.blobs.find(form["fields"]["key"]) is None


@pytest.mark.parametrize("wrong", [b"\n", b"\r", b"\n\r"])
def test_lines_are_broken_with_crlf(library: Library, wrong: bytes) -> None:
    """service.md#upload: the line breaks of the body are CRLF."""
    form = presigned(library.v3())
    body = body_of(list(form["fields"].items()), b"text without line breaks")
    for broken in (body.replace(b"\r\n", wrong), body.replace(b"\r\n", wrong, 1), body.replace(b"\r\n\r\n", wrong * 2)):
        answer = send(library, form["url"], broken)
        assert (answer.status_code, code(answer)) == (400, "MalformedPOSTRequest")


def test_a_disposition_equals_the_one_of_the_policy(library: Library) -> None:
    """service.md#upload: a `Content-Disposition` has to equal the one of the signed policy."""
    fields = presigned(library.v3(), filename='Über "alles".pdf')["fields"]
    assert fields["Content-Disposition"] == (
        "inline; filename=\"_ber _alles_.pdf\"; filename*=UTF-8''%C3%9Cber%20%22alles%22.pdf"
    )
    for wrong in ("inline", "attachment", fields["Content-Disposition"].lower(), fields["Content-Disposition"] + ";"):
        answer = post(library, {**fields, "Content-Disposition": wrong})
        assert (answer.status_code, code(answer)) == (403, "AccessDenied")
        assert "Policy Condition failed" in answer.text
    without = library.v3().get("/assets/presign").json()["fields"]
    assert "Content-Disposition" not in without
    assert post(library, {**without, "Content-Disposition": "inline"}).status_code == 403
    assert post(library, without).status_code == 204


def test_the_storage_service_takes_no_sign_in_of_the_api(library: Library) -> None:
    """I2: a token must not go to the storage service. S3 answers 400 to two ways of signing at once."""
    form = presigned(library.v3())
    body = body_of(list(form["fields"].items()))
    for sign_in in (f"Bearer {library.token()}", "Basic eDp5"):
        answer = send(library, form["url"], body, {"Authorization": sign_in})
        assert (answer.status_code, code(answer)) == (400, "InvalidArgument")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(
    content=st.binary(max_size=3000)
    | st.lists(st.sampled_from([b"\r\n--", BOUNDARY.encode(), b"\r", b"-", b"x"])).map(b"".join)
)
def test_every_content_arrives_byte_for_byte(library: Library, content: bytes) -> None:
    """I12: any content arrives unchanged. Only the delimiter itself must not occur in it."""
    delimiter = f"\r\n--{BOUNDARY}".encode()
    form = presigned(library.v3())
    if delimiter in b"\r\n" + content:
        return
    upload(library, form, content)
    stored = library.tenant.blobs.find(form["fields"]["key"])
    assert stored is not None
    with stored.open() as file:
        assert file.read() == content


@pytest.fixture
def url(library: Library) -> str:
    """The address of an uploaded file."""
    client = library.v3()
    file = {"id": upload(library, presigned(client)), "storage": "cache"}
    address: str = client.post("/assets", json={"publication_id": 1, "file": file}).json()["url"]
    return address


def test_a_download_needs_no_sign_in(library: Library, url: str) -> None:
    """service.md#assets: `url` leads to the file. Assumption: without sign-in, on another origin."""
    answer = fetch(library, url)
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.headers["Content-Disposition"].startswith('inline; filename="a file.pdf"')
    assert urlsplit(url).netloc != urlsplit(library.origin).netloc
    below_the_library = (
        f"{library.base_url}/storage/{urlsplit(url).path.removeprefix('/library/')}?{urlsplit(url).query}"
    )
    assert fetch(library, below_the_library).status_code == 404
