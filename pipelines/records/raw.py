"""Raw records as rows: the JSON of each record byte for byte, its id, its page and its SHA-256."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, cast

import msgspec
import pyarrow as pa

from pipelines.errors import ProtocolError


class RawRecords:
    """The records of some pages, collected for a raw table."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes of JSON."""
        self.payloads: list[msgspec.Raw] = []
        self._ids: list[int | None] = []
        self._pages: list[int | None] = []
        self._hashes: list[bytes] = []

    def add(self, records: Sequence[msgspec.Raw], ids: Sequence[int | None], page: int) -> None:
        """Add the records of one page, with the id of each.

        The hashes are computed here, while the records are in the processor's cache. The thread that compresses and writes would need the
        interpreter lock once for each record.
        """
        self.size += sum(map(len, records))
        self.payloads += records
        self._ids += ids
        self._pages += [page] * len(records)
        self._hashes += [hashlib.sha256(record).digest() for record in records]

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """All records as rows of the raw table. Raises `ProtocolError` if one is not UTF-8."""
        try:
            payloads = _binary(self.payloads).cast(pa.string())  # checks UTF-8
        except pa.ArrowInvalid:
            raise self._not_text() from None
        columns = {
            "id": _integers(self._ids),
            "page": _integers(self._pages),
            "payload": payloads,
            "sha256": _hexadecimal(self._hashes),
        }
        arrays = [columns[field.name].cast(field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _not_text(self) -> ProtocolError:
        index = next(index for index, payload in enumerate(self.payloads) if not _is_utf8(bytes(payload)))
        return ProtocolError(
            f"A record on page {self._pages[index]} (id {self._ids[index]}) is not valid UTF-8, as JSON must be. Reading stopped. Nothing "
            "was published. Report this record to the service's operators."
        )


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


# These give the same arrays as `pa.array`, which would check the type of every value and import pandas first.


def _binary(values: list[msgspec.Raw]) -> pa.Array[Any]:
    ends = array("i", accumulate(map(len, values), initial=0))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def _hexadecimal(hashes: list[bytes]) -> pa.Array[Any]:
    text, size = b"".join(hashes).hex().encode(), 2 * hashlib.sha256().digest_size
    ends = array("i", range(0, len(text) + 1, size))
    return pa.Array.from_buffers(pa.binary(), len(hashes), [None, pa.py_buffer(ends), pa.py_buffer(text)])


def _integers(values: list[int | None]) -> pa.Array[Any]:
    try:
        numbers = array("q", cast("list[int]", values))
    except TypeError:  # a record without an id
        return pa.array(values, pa.int64())
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(numbers)])
