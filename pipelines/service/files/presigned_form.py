"""The signed form of an upload: the API's presign response, and the form as `multipart/form-data`, which storage answers with 204.

service.md#presign and service.md#upload describe it. httpx's own multipart encoding does not fit: it takes the length of the file as it
finds it, and without a length it sends chunks, which S3 refuses. Here the length is given beforehand, and a wrong file is noticed before
the last byte of the form has left.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, BinaryIO, Self

import httpx

from pipelines.errors import ProtocolError, StorageError
from pipelines.service.http.urls import url_of
from pipelines.service.redaction import outside_text, redact

CHUNK = 128 * 1024
"""Bytes of the file that are sent at a time."""

_DAMAGED = "A stored file was not sent"

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\"\\]")
_MEDIA_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[\t\x20-\x7e]+")


STORED = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT})
"""Statuses of a stored file: 204 is documented (service.md#upload), the others are S3's if the form asks for them."""

CACHE = "cache/"
"""Prefix of every key in the storage; the file's id is the key without it (service.md#upload)."""

_MAX_TEXT = 64 * 1024

_HARMLESS_FIELDS = frozenset({"key", "content-type", "content-disposition", "bucket", "acl", "success_action_status"})
"""Fields that a message may show if the storage service repeats them: they give no right to anything."""


@dataclass(frozen=True)
class PresignResponse:
    """The API's presign response: a form that may write one file, once, for a while. Its fields appear in no message (I10)."""

    url: httpx.URL
    fields: Mapping[str, str] = field(repr=False)

    @classmethod
    def read(cls, answer: Mapping[str, Any], asked: str) -> Self:
        """Read the response (service.md#presign). Raises `ProtocolError` if it is no form for a file."""
        url, fields = answer.get("url"), answer.get("fields")
        if not isinstance(url, str) or not isinstance(fields, dict):
            raise ProtocolError(f"GET {asked} answered without `url` and `fields`, to which a file could be sent.")
        is_form = all(isinstance(value, str) for value in fields.values()) and "file" not in fields
        if not is_form or sum(len(name) + len(value) for name, value in fields.items()) > _MAX_TEXT:
            raise ProtocolError(
                f"GET {asked} answered with fields of no form: other than texts, one named `file`, or too long."
            )
        key = fields.get("key", "")
        if not key.startswith(CACHE) or key == CACHE:
            raise ProtocolError(
                f"GET {asked} answered with the key {outside_text(key, 120)!r}, which does not begin with {CACHE}: nothing was uploaded, "
                "because the library would not find it."
            )
        try:
            return cls(url_of(url), fields)
        except httpx.InvalidURL:
            raise ProtocolError(f"GET {asked} answered with an upload address that is not an address.") from None

    @property
    def file_id(self) -> str:
        """The key without its leading `cache/` (service.md#upload)."""
        return self.fields["key"].removeprefix(CACHE)

    def redacted(self, text: str) -> str:
        """Return a text of the storage service without any field that gives a right."""
        return outside_text(
            redact(text, *(value for name, value in self.fields.items() if name.lower() not in _HARMLESS_FIELDS))
        )


class PresignedForm:
    """The multipart body: every field as it is and in the given order, then the file; line breaks are CRLF. It can be sent once.

    While it is sent, it raises `StorageError` if the file does not have `size` bytes, or not the given SHA-256: then the form stays
    incomplete and the storage service takes nothing.
    """

    def __init__(
        self,
        fields: Mapping[str, str],
        file: BinaryIO,
        *,
        filename: str,
        content_type: str,
        size: int,
        sha256: str | None = None,
    ) -> None:
        boundary = f"bookferry-{secrets.token_hex(16)}"
        kind = content_type if _MEDIA_TYPE.fullmatch(content_type) else "application/octet-stream"
        head = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{quoted(name)}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        head += f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quoted(filename)}"\r\n'
        head += f"Content-Type: {kind}\r\n\r\n"
        self._head = head.encode(errors="replace")
        self._end = f"\r\n--{boundary}--\r\n".encode()
        self._file = file
        self._size = size
        self._sha256 = sha256
        self.headers = {
            "content-type": f"multipart/form-data; boundary={boundary}",
            "content-length": str(len(self._head) + size + len(self._end)),
        }

    def __iter__(self) -> Iterator[bytes]:
        yield self._head
        digest, sent = hashlib.sha256(), 0
        while chunk := self._file.read(CHUNK):
            sent += len(chunk)
            if sent > self._size:
                raise StorageError(f"{_DAMAGED}: it has more than the {self._size:,} bytes it should have.")
            digest.update(chunk)
            yield chunk
        if sent != self._size:
            raise StorageError(f"{_DAMAGED}: it has {sent:,} bytes, and should have {self._size:,}.")
        if self._sha256 not in (None, digest.hexdigest()):
            raise StorageError(f"{_DAMAGED}: its SHA-256 is {digest.hexdigest()}, and should be {self._sha256}.")
        yield self._end


def quoted(name: str) -> str:
    """Returns a name that ends no quotation and no line in any parser, as browsers do it.

    Control characters, quotes and backslashes become %XX; RFC 7578 leaves everything else as it is, in UTF-8. A character without UTF-8,
    half of a surrogate pair, becomes a question mark.
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", name)
