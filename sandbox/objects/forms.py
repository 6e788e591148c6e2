"""Reads a form of one file, ``multipart/form-data`` as in RFC 2046 and RFC 7578, and refuses what a client gets wrong.

Werkzeug's parser takes any line break; a library's storage takes CRLF only (service.md#upload).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from mmap import mmap

from werkzeug.http import parse_options_header

from sandbox.objects.errors import S3Error, invalid_argument, malformed_form

# What follows the delimiter of a part: the end of its line, headers and an empty line
_HEAD = re.compile(rb"[ \t]*\r\n((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\r\n\0]*\r\n)*)\r\n")
_DISPOSITION = re.compile(rb"(?:^|\r\n)content-disposition:([^\r\n]*)", re.IGNORECASE)
_FILE = "file"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a form. Its content is the body from ``start`` to ``stop``. ``filename`` is None for a plain field."""

    name: str
    filename: str | None
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Form:
    """The fields before the file, with names in small letters, and the file, which is the last part."""

    fields: dict[str, str]
    file: Part


def boundary_of(content_type: str) -> str:
    """Returns the boundary of a Content-Type, or raises 412 where the body is no form."""
    kind, options = parse_options_header(content_type)
    if kind != "multipart/form-data" or not options.get("boundary"):
        message = "Bucket POST must be of the enclosure-type multipart/form-data"
        raise S3Error(412, "PreconditionFailed", message)
    return options["boundary"]


def read_form(body: mmap | bytes, boundary: str) -> Form:
    """Returns the form of a body, or raises 400."""
    fields: dict[str, str] = {}
    parts = list(_parts(body, boundary.encode()))
    for number, part in enumerate(parts, start=1):
        name = part.name.lower()
        if name == _FILE:
            if number < len(parts):
                raise malformed_form(f"The file must be the last part; {parts[number].name} comes after it.")
            return Form(fields, part)
        if name in fields:
            raise invalid_argument(f"A field must not come twice: {part.name}")
        fields[name] = bytes(body[part.start : part.stop]).decode("utf-8", "replace")
    raise invalid_argument("POST requires exactly one file upload per request.")


def _parts(body: mmap | bytes, boundary: bytes) -> Iterator[Part]:
    """Yields the parts. Before the first delimiter there may be a preamble, after the last an epilogue."""
    delimiters = list(re.finditer(rb"(?:\A|\r\n)--" + re.escape(boundary), body))
    if not delimiters or body[delimiters[-1].end() : delimiters[-1].end() + 2] != b"--":
        raise malformed_form("A boundary is missing.")
    for opening, closing in pairwise(delimiters):
        head = _HEAD.match(body, opening.end(), closing.start())
        if head is None:
            raise malformed_form("A boundary is not followed by CRLF, or a part has an invalid header.")
        disposition = _DISPOSITION.search(head[1])
        kind, options = parse_options_header(
            (disposition[1] if disposition else b"").decode("utf-8", "replace").strip()
        )
        if kind != "form-data" or not options.get("name"):
            raise malformed_form("A part has no name.")
        yield Part(options["name"], options.get("filename"), head.end(), closing.start())
