"""The page log: the pages of one walk over a listing, as they arrived. A run continues from it after a kill (I9).

Frames are appended to one file, each with its length and a checksum. The next process cuts off a frame that a killed one had begun.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Self

from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey

_HEADER = struct.Struct(">4sIII")
_MAGIC = b"page"


class PageLog:
    """Appends frames of a mark and a body to a file, and reads them back. With a `key`, they are sealed. Use it as a context manager.

    `before_append` is called before each frame is written.
    """

    def __init__(
        self, path: Path, key: PersonalKey | None = None, before_append: Callable[[], None] = lambda: None
    ) -> None:
        self._path = path
        self._key = key
        self._before_append = before_append
        self._file: BinaryIO | None = None

    def replay(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields the complete frames in order, and cuts off what follows them."""
        with storage_errors(self._path):
            file, good = self._opened(), 0
            size = file.seek(0, os.SEEK_END)
            while (frame := _read(file, good, size)) is not None:
                good += _HEADER.size + len(frame[0]) + len(frame[1])
                yield frame if self._key is None else (self._key.unseal(frame[0]), self._key.unseal(frame[1]))
            file.truncate(good)

    def append(self, mark: bytes, body: bytes) -> None:
        """Append a frame. It survives the death of this process; after a crash of the machine it is complete, or is cut off."""
        self._before_append()
        if self._key is not None:
            mark, body = self._key.seal(mark), self._key.seal(body)
        with storage_errors(self._path):
            head = _HEADER.pack(_MAGIC, len(mark), len(body), zlib.crc32(body, zlib.crc32(mark)))
            file = self._opened()
            file.write(head + mark)
            file.write(body)
            file.flush()

    def _opened(self) -> BinaryIO:
        if self._file is None:
            self._path.parent.mkdir(exist_ok=True)
            self._file = self._path.open("a+b")
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _read(file: BinaryIO, at: int, size: int) -> tuple[bytes, bytes] | None:
    """Returns the frame at an offset; None where there is no complete one."""
    file.seek(at)
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return None
    sign, mark_size, body_size, checksum = _HEADER.unpack(head)
    if sign != _MAGIC or at + _HEADER.size + mark_size + body_size > size:
        return None
    mark, body = file.read(mark_size), file.read(body_size)
    return (mark, body) if zlib.crc32(body, zlib.crc32(mark)) == checksum else None
