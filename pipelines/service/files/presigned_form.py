"""`multipart/form-data` as a storage's signed form wants it (service-api.md, Upload sequence 3; trap A17), streamed.

Made by hand because httpx takes the length from the file as it finds it, and sends in chunks, which S3 refuses, where it finds none. Here
the length is told beforehand, and a file that turns out to be another one is noticed before the last byte of the form has left.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, BinaryIO, Self

import httpx

from pipelines.errors import ProtocolError, RefusedError, StorageError
from pipelines.service.redaction import outside_text, redact

CHUNK = 128 * 1024

_DAMAGED = "A kept file was not sent"

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\"\\]")
_MEDIA_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[\t\x20-\x7e]+")


class PresignedForm:
    """Every field as it is and in the order given, then the file; line breaks are CRLF. It can be sent once.

    Raises `StorageError` while it is sent where the file has another number of bytes than `size`, or another SHA-256 than the one that is
    given: then the form never becomes whole, and the storage takes nothing.
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
    """A name that ends no quotation and no line, whoever reads it: control characters, quotes and backslashes as %XX, as browsers do.

    RFC 7578 leaves all else as it is, in UTF-8. What has no UTF-8, half of a surrogate pair, becomes a question mark.
    """
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", name)


STORED = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT})
"""service-api.md: "The storage service answers success with 204"; the others are what S3 answers where the form asks for them."""


CACHE = "cache/"


_MAX_FIELDS = 100


_MAX_TEXT = 64 * 1024


_HARMLESS_FIELDS = frozenset({"key", "content-type", "content-disposition", "bucket", "acl", "success_action_status"})
"""Fields that may be told where a storage repeats them: they give no right to anything."""


@dataclass(frozen=True)
class PresignResponse:
    """A form that may write one file, once, for a while."""

    url: httpx.URL
    fields: Mapping[str, str] = field(repr=False)

    @classmethod
    def read(cls, answer: Mapping[str, Any], asked: str) -> Self:
        """service-api.md, Presign response. Raises `ProtocolError` where the answer is none."""
        url, fields = answer.get("url"), answer.get("fields")
        if not isinstance(url, str) or not isinstance(fields, dict):
            raise ProtocolError(f"GET {asked} answered without `url` and `fields`, to which a file could be sent.")
        if not all(isinstance(value, str) for value in fields.values()) or "file" in fields:
            raise ProtocolError(f"GET {asked} answered with fields that are no texts, or with one named `file`.")
        if len(fields) > _MAX_FIELDS or sum(len(name) + len(value) for name, value in fields.items()) > _MAX_TEXT:
            raise ProtocolError(f"GET {asked} answered with more fields than any form has.")
        key = fields.get("key", "")
        if not key.startswith(CACHE) or key == CACHE:
            raise ProtocolError(
                f"GET {asked} answered with the key {outside_text(key, 120)!r}, which does not begin with {CACHE}: nothing was uploaded, "
                "because the library would not find it."
            )
        try:
            return cls(httpx.URL(url), fields)
        except httpx.InvalidURL:
            raise ProtocolError(f"GET {asked} answered with an upload address that is none.") from None

    @property
    def file_id(self) -> str:
        """Trap A17: the key without its leading `cache/`, and only the leading one."""
        return self.fields["key"].removeprefix(CACHE)

    def check_size(self, size: int) -> None:
        """Raise `RefusedError` where the policy says that the storage will not take so many bytes, before gigabytes are sent in vain."""
        least, most = _sizes(self.fields.get("policy", ""))
        if not least <= size <= most:
            code, said = (
                ("EntityTooLarge", f"at most {most:,}") if size > most else ("EntityTooSmall", f"at least {least:,}")
            )
            raise RefusedError(
                f"The file has {size:,} bytes, and the library's form for it allows {said} ({code}). It was not sent.",
                status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                code=code,
                detail=f"{said} bytes are allowed",
            )

    def told(self, text: str) -> str:
        """What a storage said, without any field that gives a right."""
        return outside_text(
            redact(text, *(value for name, value in self.fields.items() if name.lower() not in _HARMLESS_FIELDS))
        )


def _sizes(policy: str) -> tuple[int, int]:
    """What a policy of S3 allows, as `["content-length-range", least, most]` among its conditions; anything where it does not tell."""
    try:
        for condition in json.loads(base64.b64decode(policy))["conditions"]:
            if isinstance(condition, list) and condition[0] == "content-length-range":
                return int(condition[1]), int(condition[2])
    except (ValueError, TypeError, LookupError, RecursionError):
        pass  # the storage knows
    return 0, sys.maxsize
