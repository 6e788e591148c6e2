"""Uploads (service.md#upload, I2, I10, I11): the form as a signed policy wants it, over real sockets."""

from __future__ import annotations

import hashlib
import io
import re
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import BookferryError, ProtocolError, RefusedError, StorageError
from pipelines.service.files.presigned_form import PresignedForm
from pipelines.service.files.storage_client import TRIES
from pipelines.service.files.upload import StorageRefusalError, UnavailableStorageError, Uploads
from sandbox.objects.forms import boundary_of, read_form
from tests.sandbox.process import SandboxProcess
from tests.service.conftest import ClientFor, Serve
from tests.service.scripted import Answer, in_turn

CONTENT = bytes(range(256)) * 2000 + b"\r\n--bookferry"
SECRET = "c2lnbmVkLXBvbGljeQ=="
ANOTHER = "5f4dcc3b5aa765d61d8327deb882cf99"

FIELDS = {
    "key": "cache/assets/cache/0a1b.pdf",
    "Content-Disposition": "inline; filename=\"_.pdf\"; filename*=UTF-8''%C3%9C.pdf",
    "Content-Type": "application/pdf",
    "x-amz-algorithm": "AWS4-HMAC-SHA256",
    "policy": SECRET,
    "odd": " two\r\nlines, ä ",
    "x-amz-signature": ANOTHER,
}
WANTED: dict[str, Any] = {"filename": "Über.pdf", "content_type": "application/pdf", "size": len(CONTENT)}
STORED = Answer(b"", status=204)


def s3_error(status: int, code: str, message: str) -> Answer:
    """An error response of S3."""
    return Answer(f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode(), status=status)


EXPIRED = s3_error(403, "AccessDenied", f"Invalid according to Policy: Policy expired. {SECRET} {ANOTHER}")


def opened(content: bytes = CONTENT) -> Callable[[], AbstractContextManager[BinaryIO]]:
    return lambda: io.BytesIO(content)


class Place:
    """A library that issues forms, each with its number in the key, and a storage service that responds in turn."""

    def __init__(self, serve: Serve, client_for: ClientFor, *answers: Answer | Exception) -> None:
        self.storage = serve(in_turn(*answers))
        self.library = serve(lambda request: STORED if request.method == "POST" else Answer(self.form()))
        self.changes: dict[str, Any] = {}
        self.client = client_for(self.library.url)
        self.uploads = Uploads(self.client)

    def form(self) -> dict[str, Any]:
        """Return the next form."""
        number = len(self.library.received)
        fields = {**FIELDS, "key": FIELDS["key"].replace("0a1b", str(number))}
        return {"url": f"{self.storage.url}/bucket", "fields": fields, **self.changes}

    def upload(self, **options: Any) -> dict[str, Any]:
        """Upload one file."""
        with self.uploads as uploads:
            return uploads.upload(**{"open_file": opened(), "presign": "assets/presign", **WANTED, **options})


def test_the_form_has_every_field_as_it_was_and_the_file_last(serve: Serve, client_for: ClientFor) -> None:
    """service.md#upload: every field unchanged, the part `file` last, CRLF, a Content-Length; the storage sees no sign-in (I2)."""
    place = Place(serve, client_for, STORED)
    assert place.upload(sha256=hashlib.sha256(CONTENT).hexdigest()) == {
        "id": "assets/cache/1.pdf",
        "storage": "cache",
        "metadata": {"size": len(CONTENT), "filename": "Über.pdf", "mime_type": "application/pdf"},
    }
    [presign_request], [upload_request] = place.library.received, place.storage.received
    assert (presign_request.path, presign_request.query) == (
        "/api/v2/assets/presign",
        {"filename": "Über.pdf", "type": "application/pdf"},
    )
    boundary = boundary_of(upload_request.headers["content-type"])
    expected = b"".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in {**FIELDS, "key": "cache/assets/cache/1.pdf"}.items()
    )
    head = 'Content-Disposition: form-data; name="file"; filename="Über.pdf"\r\nContent-Type: application/pdf\r\n\r\n'
    expected += f"--{boundary}\r\n{head}".encode() + CONTENT + f"\r\n--{boundary}--\r\n".encode()
    assert upload_request.body == expected
    assert upload_request.headers["content-length"] == str(len(expected))
    assert upload_request.method == "POST"
    assert "authorization" in presign_request.headers
    assert {"host", "accept", "accept-encoding", "user-agent", "content-type", "content-length"} == set(
        upload_request.headers
    )


def test_a_storage_on_the_librarys_own_host_is_charged_and_sees_no_sign_in(serve: Serve, client_for: ClientFor) -> None:
    """I1: each request to that host counts for the budget."""
    place = Place(serve, client_for)
    place.changes = {"url": f"{place.library.url}/api/v2/storage"}
    place.upload()
    form, file = place.library.received
    assert (file.path, place.client.requests) == ("/api/v2/storage", 2)
    assert ["authorization" in request.headers for request in (form, file)] == [True, False]


@pytest.mark.parametrize(
    "faults",
    [
        [s3_error(503, "SlowDown", "Please reduce your request rate"), ConnectionError()],
        [s3_error(400, "RequestTimeout", "Your socket connection was idle"), Answer(b"", status=429), Answer(raw=b"")],
        [EXPIRED, Answer(b"", status=502), ConnectionError()],
    ],
    ids=["503, reset", "idle, 429, closed", "all sorts"],
)
def test_a_temporary_failure_is_tried_again_with_a_new_form(
    *, serve: Serve, client_for: ClientFor, faults: list[Answer | Exception]
) -> None:
    """A form may have expired, or may be used up: each try asks for a new one."""
    place = Place(serve, client_for, *faults, Answer(b"<PostResponse/>", status=201))
    assert place.upload()["id"] == f"assets/cache/{len(faults) + 1}.pdf"
    assert len(place.library.received) == len(place.storage.received) == len(faults) + 1


@pytest.mark.parametrize(
    ("answer", "error", "pattern", "tries"),
    [
        (
            EXPIRED,
            StorageRefusalError,
            r"403 Forbidden \(AccessDenied: Invalid according to Policy: Policy expired",
            TRIES,
        ),
        (Answer(b"", status=500), UnavailableStorageError, "500 Internal Server Error.*tried again", TRIES),
        (Answer(b"", status=503, headers={"Retry-After": "9999"}), UnavailableStorageError, "503", 1),
        (
            s3_error(400, "EntityTooLarge", "exceeds the maximum"),
            StorageRefusalError,
            "EntityTooLarge: exceeds the max",
            1,
        ),
        (
            Answer(b"", status=303, headers={"Location": "http://127.0.0.1:1/"}),
            StorageRefusalError,
            "303 .* not uploaded",
            1,
        ),
        (Answer(b"<html>", headers={"content-type": "text/html"}), StorageRefusalError, "200 OK, where 204", 1),
        (Answer(b"", status=202), StorageRefusalError, "202 Accepted, where 204 was expected", 1),
        (Answer(b"", status=501), StorageRefusalError, "501 Not Implemented", 1),
    ],
)
def test_a_permanent_failure_shows_no_part_of_the_form(
    *,
    serve: Serve,
    client_for: ClientFor,
    answer: Answer | Exception,
    error: type[BookferryError],
    pattern: str,
    tries: int,
) -> None:
    """A limited number of tries; the message has the storage service's words, but no policy and no signature (I10)."""
    place = Place(serve, client_for, answer)
    with pytest.raises(error, match=pattern) as caught:
        place.upload()
    assert type(caught.value) is error
    assert len(place.storage.received) == tries
    assert f"POST {place.storage.url}" in str(caught.value)
    text = f"{caught.value} {vars(caught.value)} {caught.value.__cause__!r}"
    assert not [secret for secret in (SECRET, ANOTHER, "/bucket") if secret in text]
    assert SECRET not in repr(place.uploads)


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_is_followed_once_with_the_same_form(serve: Serve, client_for: ClientFor, status: int) -> None:
    """RFC 9110, 15.4.8: the same body, byte for byte and from its start; a second redirect fails this file alone."""
    final = serve(lambda _: STORED)
    place = Place(serve, client_for, Answer(b"", status=status, headers={"Location": f"{final.url}/other"}))
    place.upload(sha256=hashlib.sha256(CONTENT).hexdigest())
    forms = [*place.storage.received, *final.received]
    first, second = (form.body.split(boundary_of(form.headers["content-type"]).encode()) for form in forms)
    assert first == second
    assert (forms[1].method, forms[1].path, "authorization" in forms[1].headers) == ("POST", "/other", False)
    assert len(place.library.received) == 1


@pytest.mark.parametrize(
    ("location", "requests"),
    [
        ("/again", 2),
        ("http://storage.example/", 1),
        ("https://user:secret@storage.example/", 1),
        ("http://[", 1),
    ],
)
def test_a_redirect_that_leads_nowhere_fails_its_file_alone(
    serve: Serve, client_for: ClientFor, location: str, requests: int
) -> None:
    """The addresses are checked as those of a form; a `RefusedError` is about one file."""
    place = Place(serve, client_for, Answer(b"", status=307, headers={"Location": location}))
    with pytest.raises(RefusedError) as caught:
        place.upload()
    assert len(place.storage.received) == requests
    assert len(place.library.received) == 1
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "pattern"),
    [
        ({"fields": {**FIELDS, "key": "uploads/cache/1"}}, "does not begin with cache/"),
        ({"fields": {**FIELDS, "key": "cache/"}}, "does not begin with cache/"),
        ({"fields": {**FIELDS, "key": None}}, "fields of no form"),
        ({"fields": {**FIELDS, "file": "x"}}, "one named `file`"),
        ({"fields": {**FIELDS, "x": "y" * 100_000}}, "too long"),
        ({"fields": []}, "without `url` and `fields`"),
        ({"url": "http://["}, "names an address"),
        ({"url": "http://storage.example/"}, "https"),
        ({"url": "https://user:password@storage.example/"}, "user name"),
    ],
)
def test_a_form_that_cannot_be_right_is_not_sent(
    serve: Serve, client_for: ClientFor, changes: dict[str, Any], pattern: str
) -> None:
    """service.md#upload: the library would never find a file under another key. I13: a form comes from outside."""
    place = Place(serve, client_for, STORED)
    place.changes = changes
    with pytest.raises(ProtocolError, match=pattern):
        place.upload()
    assert place.storage.received == []


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x", CONTENT + CONTENT, b"", b"x" + CONTENT[1:]])
def test_a_kept_file_that_is_another_one_is_never_uploaded(serve: Serve, client_for: ClientFor, content: bytes) -> None:
    """I12: shorter, longer, or with another byte. The form stays incomplete, and the storage service takes nothing."""
    place = Place(serve, client_for, STORED)
    with pytest.raises(StorageError, match=r"A stored file was not sent: it has .* should have|its SHA-256 is"):
        place.upload(open_file=opened(content), sha256=hashlib.sha256(CONTENT).hexdigest())
    assert len(place.library.received) == 1
    assert all(len(request.body) < int(request.headers["content-length"]) for request in place.storage.received)


@pytest.mark.long
def test_a_large_file_is_streamed(sandbox: SandboxProcess, client_for: ClientFor, tmp_path: Path) -> None:
    """I11: memory does not depend on the size of a file."""
    size = 200 * 1024**2
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(size)
    with Uploads(client_for(sandbox.base_url())) as uploads:
        tracemalloc.start()
        options = {**WANTED, "size": size}
        uploads.upload(lambda: path.open("rb"), presign="assets/presign", **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    [form] = [request for request in sandbox.requests() if request["method"] == "POST"]
    assert form["status"] == 204
    assert peak < 5 * 1024**2


def test_a_kept_file_is_opened_anew_for_each_try_and_closed(serve: Serve, client_for: ClientFor) -> None:
    """The file is closed also if the storage service hangs up."""
    files: list[io.BytesIO] = []

    def open_file() -> io.BytesIO:
        files.append(io.BytesIO(CONTENT))
        return files[-1]

    with pytest.raises(UnavailableStorageError, match="the connection broke"):
        Place(serve, client_for, ConnectionError()).upload(open_file=open_file)
    assert [file.closed for file in files] == [True] * TRIES


@given(
    filename=st.text(st.characters() | st.sampled_from('"\\\r\n;%\x00'), max_size=60),
    content_type=st.sampled_from(["text/plain", "text/plain; charset=utf-8", "a\r\nb: c", "", "x/y\r\n\r\nz"]),
)
def test_no_file_name_breaks_out_of_its_part(filename: str, content_type: str) -> None:
    """I13: the sandbox's parser finds the fields, one file, and nothing else."""
    content = b'\r\nContent-Disposition: form-data; name="key"\r\n\r\n--x\r\n'
    form = PresignedForm(FIELDS, io.BytesIO(content), filename=filename, content_type=content_type, size=len(content))
    body = b"".join(form)
    assert len(body) == int(form.headers["content-length"])
    parsed_form = read_form(body, boundary_of(form.headers["content-type"]))
    assert parsed_form.fields == {name.lower(): value for name, value in FIELDS.items()}
    escaped = re.sub(r"[\x00-\x1f\x7f\\]", lambda character: f"%{ord(character[0]):02X}", filename)
    expected = (
        escaped.encode(errors="replace").decode().replace("%22", '"')
    )  # which the reader undoes, as browsers' forms have it
    assert (parsed_form.file.filename, body[parsed_form.file.start : parsed_form.file.stop]) == (expected, content)
