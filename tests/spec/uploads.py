"""The upload sequence of service.md#upload for tests, and multipart bodies written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from tests.spec.conftest import Library, plain_transport

CONTENT = b"A file with\r\nlines,\n--boundary\r\nand more.\x00\xff"
BOUNDARY = "boundary-of-a-test"
Field = tuple[str, str]


def presigned(client: httpx.Client, path: str = "/assets/presign", **query: str) -> dict[str, Any]:
    """Returns an upload form of the service."""
    answer = client.get(path, params={"filename": "a file.pdf", "type": "application/pdf", **query})
    assert answer.status_code == 200, answer.text
    form: dict[str, Any] = answer.json()
    return form


def body_of(fields: Sequence[Field], content: bytes | None = CONTENT, after: Sequence[Field] = ()) -> bytes:
    """Returns the body of a form with its parts in this order. Without content it has no file."""
    parts = [_part(f'name="{name}"', value.encode()) for name, value in fields]
    if content is not None:
        parts.append(_part('name="file"; filename="a file.pdf"\r\nContent-Type: application/pdf', content))
    parts += [_part(f'name="{name}"', value.encode()) for name, value in after]
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def _part(disposition: str, value: bytes) -> bytes:
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
    return head.encode() + value + b"\r\n"


def send(library: Library, url: str, body: bytes, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """Posts a body to the storage service. It adds a Content-Length and no other header that the test did not name."""
    all_headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", **(headers or {})}
    with httpx.Client(transport=plain_transport()) as client:
        return client.post(url, content=body, headers=all_headers)


def upload(library: Library, form: Mapping[str, Any], content: bytes = CONTENT) -> str:
    """Uploads a file with a form and returns its file id."""
    answer = send(library, form["url"], body_of(list(form["fields"].items()), content))
    assert answer.status_code == 204, answer.text
    key: str = form["fields"]["key"]
    return key.removeprefix("cache/")


def fetch(library: Library, url: str, method: str = "GET", **headers: str) -> httpx.Response:
    """Sends a request to the storage service, signed by its address alone."""
    with httpx.Client(transport=plain_transport()) as client:
        return client.request(method, url, headers=headers)


def code(answer: httpx.Response) -> str:
    """Returns the error code of S3's XML error document."""
    assert answer.headers["Content-Type"] == "application/xml"
    return answer.text.partition("<Code>")[2].partition("</Code>")[0]
