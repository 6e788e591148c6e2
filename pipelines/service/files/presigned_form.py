"""`multipart/form-data` as a storage's signed form wants it (service-api.md, Upload sequence 3; trap A17), streamed.

Made by hand because httpx takes the length from the file as it finds it, and sends in chunks, which S3 refuses, where it finds none. Here
the length is told beforehand, and a file that turns out to be another one is noticed before the last byte of the form has left.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from pipelines.errors import StorageError

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
