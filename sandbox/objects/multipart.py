"""Streams ``multipart/form-data`` as in RFC 2046 and RFC 7578, with at most one chunk in memory.

Line breaks are CRLF; a body with other line breaks has no delimiters and is refused.
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
    """A request body."""

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes; no bytes only at the end."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a form: name, file name if it has one, and headers with names in small letters.

    Its ``chunks`` have to be read before the next part.
    """

    name: str
    filename: str | None
    headers: Mapping[str, str]
    chunks: Iterator[bytes] = field(repr=False)


def boundary_of(content_type: str) -> str | None:
    """Returns the boundary of a Content-Type, None if the body is no form."""
    kind, options = parse_options_header(content_type)
    boundary = options.get("boundary", "")
    return boundary if kind == "multipart/form-data" and _BOUNDARY.fullmatch(boundary) else None


class MultipartReader:
    """Reads the parts of a body in order."""

    def __init__(self, stream: Stream, boundary: str) -> None:
        self._stream = stream
        self._delimiter = f"\r\n--{boundary}".encode()
        # The first delimiter may start the body; then its line break is the one that ended the head
        self._buffer = _LINE
        self._ended = False

    def parts(self) -> Iterator[Part]:
        """Yields every part. Raises 400 where the body is not a valid form."""
        for _ in self._until_delimiter():
            pass  # skip the preamble
        while self._another():
            headers = self._head()
            name, filename = _disposition(headers)
            chunks = self._until_delimiter()
            yield Part(name, filename, headers, chunks)
            for _ in chunks:
                pass

    def _fill(self) -> bool:
        """Reads more; returns False at the end of the body."""
        if not self._ended:
            data = self._stream.read(_CHUNK)
            self._ended = not data
            self._buffer += data
        return not self._ended

    def _until_delimiter(self) -> Iterator[bytes]:
        """Yields the bytes before the next delimiter and consumes the delimiter."""
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
        """Returns whether a part follows the delimiter; after the last part, the rest is an epilogue."""
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
        """Returns the next line with its CRLF, or the rest if there is none."""
        while _LINE not in self._buffer and len(self._buffer) < _MAX_HEAD_BYTES and self._fill():
            pass
        line, found, rest = self._buffer.partition(_LINE)
        self._buffer = rest
        return line + found

    def _head(self) -> dict[str, str]:
        """Returns the headers of a part, up to the empty line."""
        headers: dict[str, str] = {}
        size = 0
        while (line := self._line()) != _LINE:
            size += len(line)
            parts = _HEADER.fullmatch(line.removesuffix(_LINE))
            if parts is None or not line.endswith(_LINE) or size > _MAX_HEAD_BYTES:
                raise malformed_form("A part has an invalid header.")
            headers[parts[1].decode().lower()] = parts[2].decode("utf-8", "replace").strip(" \t")
        return headers


def _disposition(headers: Mapping[str, str]) -> tuple[str, str | None]:
    kind, options = parse_options_header(headers.get("content-disposition", ""))
    name = options.get("name", "")
    if kind != "form-data" or not name:
        raise malformed_form("A part has no name.")
    return name, options.get("filename")
