"""The upload sequence of service-api.md, "Assets", as a test takes it; and multipart bodies written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from tests.spec.conftest import Library

CONTENT = b"A file with\r\nlines,\n--boundary\r\nand more.\x00\xff"
BOUNDARY = "boundary-of-a-test"
Field = tuple[str, str]


def presigned(client: httpx.Client, path: str = "/assets/presign", **query: str) -> dict[str, Any]:
    """A form, as the service gives it out."""
    answer = client.get(path, params={"filename": "a file.pdf", "type": "application/pdf", **query})
    assert answer.status_code == 200, answer.text
    form: dict[str, Any] = answer.json()
    return form


def body_of(fields: Sequence[Field], content: bytes | None = CONTENT, after: Sequence[Field] = ()) -> bytes:
    """A form's body with its parts in this order; no file when there is no content."""
    parts = [_part(f'name="{name}"', value.encode()) for name, value in fields]
    if content is not None:
        parts.append(_part('name="file"; filename="a file.pdf"\r\nContent-Type: application/pdf', content))
    parts += [_part(f'name="{name}"', value.encode()) for name, value in after]
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def _part(disposition: str, value: bytes) -> bytes:
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
    return head.encode() + value + b"\r\n"


def send(library: Library, url: str, body: bytes, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """A body to the storage service, with a Content-Length and nothing else that is not asked for."""
    given = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", **(headers or {})}
    with httpx.Client(transport=library.transport()) as client:
        return client.post(url, content=body, headers=given)


def upload(library: Library, form: Mapping[str, Any], content: bytes = CONTENT) -> str:
    """Upload a file with a form; the id that the service knows it by."""
    answer = send(library, form["url"], body_of(list(form["fields"].items()), content))
    assert answer.status_code == 204, answer.text
    key: str = form["fields"]["key"]
    return key.removeprefix("cache/")


def fetch(library: Library, url: str, method: str = "GET", **headers: str) -> httpx.Response:
    """A request to the storage service without any sign-in but the address."""
    with httpx.Client(transport=library.transport()) as client:
        return client.request(method, url, headers=headers)


def code(answer: httpx.Response) -> str:
    """The code of a refusal, which is S3's XML document."""
    assert answer.headers["Content-Type"] == "application/xml"
    return answer.text.partition("<Code>")[2].partition("</Code>")[0]
