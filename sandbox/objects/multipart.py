"""Reads ``multipart/form-data`` as it comes: RFC 2046 and RFC 7578 to the letter, never more in memory than one chunk.

Line breaks are CRLF. A body that breaks its lines otherwise has no delimiters, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from werkzeug.http import parse_options_header

from sandbox.objects.errors import malformed_form

_CHUNK = 64 * 1024
_MAX_HEAD_BYTES = 16 * 1024
_LINE = b"\r\n"
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]", re.ASCII)
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n\0]*)")


class Stream(Protocol):
    """Where the body comes from."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, and none only at the end."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a form: its name, the file name if it has one, and its headers with small letters.

    Its ``chunks`` have to be read before the next part is asked for.
    """

    name: str
    filename: str | None
    headers: Mapping[str, str]
    chunks: Iterator[bytes] = field(repr=False)


def boundary_of(content_type: str) -> str | None:
    """The boundary that a Content-Type names, None when the body is no form."""
    kind, options = parse_options_header(content_type)
    boundary = options.get("boundary", "")
    return boundary if kind == "multipart/form-data" and _BOUNDARY.fullmatch(boundary) else None


class MultipartReader:
    """The parts of one body, one after the other."""

    def __init__(self, stream: Stream, boundary: str) -> None:
        self._stream = stream
        self._delimiter = f"\r\n--{boundary}".encode()
        # The first delimiter may be the very first thing: then the line break before it is the one that ended the head
        self._buffer = _LINE
        self._ended = False

    def parts(self) -> Iterator[Part]:
        """Every part. Raises the 400 as soon as the body stops being a form."""
        for _ in self._until_delimiter():
            pass  # a preamble says nothing
        while self._another():
            headers = self._head()
            name, filename = _disposition(headers)
            chunks = self._until_delimiter()
            yield Part(name, filename, headers, chunks)
            for _ in chunks:
                pass

    def _fill(self) -> bool:
        """Fetch more; False at the end of the body."""
        if not self._ended:
            data = self._stream.read(_CHUNK)
            self._ended = not data
            self._buffer += data
        return not self._ended

    def _until_delimiter(self) -> Iterator[bytes]:
        """What comes before the next delimiter, which is taken away too."""
        while True:
            before, found, after = self._buffer.partition(self._delimiter)
            if found:
                self._buffer = after
                if before:
                    yield before
                return
            keep = len(self._delimiter) - 1
            ready, self._buffer = self._buffer[:-keep], self._buffer[-keep:]
            if ready:
                yield ready
            if not self._fill():
                raise malformed_form("A boundary is missing.")

    def _another(self) -> bool:
        """Whether a part follows the delimiter that was just read; after the last one the rest is an epilogue."""
        while len(self._buffer) < len(_LINE) and self._fill():
            pass
        if self._buffer.startswith(b"--"):
            self._buffer = b""
            return False
        padding, found, after = self._line().partition(_LINE)
        if not found or padding.strip(b" \t") or after:
            raise malformed_form("A boundary is not followed by CRLF.")
        return True

    def _line(self) -> bytes:
        """The next line with its CRLF, or what there is when none comes."""
        while _LINE not in self._buffer and len(self._buffer) < _MAX_HEAD_BYTES and self._fill():
            pass
        line, found, rest = self._buffer.partition(_LINE)
        self._buffer = rest
        return line + found

    def _head(self) -> dict[str, str]:
        """The headers of a part, up to the empty line."""
        headers: dict[str, str] = {}
        size = 0
        while (line := self._line()) != _LINE:
            size += len(line)
            parts = _HEADER.fullmatch(line.removesuffix(_LINE))
            if parts is None or not line.endswith(_LINE) or size > _MAX_HEAD_BYTES:
                raise malformed_form("A part has a header that is none.")
            headers[parts[1].decode().lower()] = parts[2].decode("utf-8", "replace").strip(" \t")
        return headers


def _disposition(headers: Mapping[str, str]) -> tuple[str, str | None]:
    kind, options = parse_options_header(headers.get("content-disposition", ""))
    name = options.get("name", "")
    if kind != "form-data" or not name:
        raise malformed_form("A part has no name.")
    return name, options.get("filename")
