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
    """The records of some pages, on their way into a raw table."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes of JSON."""
        self.payloads: list[bytes] = []
        self._ids: list[int | None] = []
        self._pages: list[int | None] = []
        self._hashes: list[bytes] = []

    def add(self, records: Sequence[msgspec.Raw], ids: Sequence[int | None], page: int) -> None:
        """Take in the records of one page, with the id of each.

        They are hashed here, still in the processor's cache, and not in the thread that packs and writes, which would have to ask for
        the interpreter once for each record.
        """
        payloads = [bytes(record) for record in records]
        self.size += sum(map(len, payloads))
        self.payloads += payloads
        self._ids += ids
        self._pages += [page] * len(payloads)
        self._hashes += [hashlib.sha256(payload).hexdigest().encode() for payload in payloads]

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """All of them as rows of the raw table. Raises `ProtocolError` where one is not UTF-8."""
        try:
            payloads = _binary(self.payloads).cast(pa.string())  # checks UTF-8
        except pa.ArrowInvalid:
            raise self._not_text() from None
        columns = (_integers(self._ids), _integers(self._pages), payloads, _binary(self._hashes))
        arrays = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _not_text(self) -> ProtocolError:
        at = next(at for at, payload in enumerate(self.payloads) if not _is_utf8(payload))
        return ProtocolError(
            f"A record on page {self._pages[at]} (id {self._ids[at]}) is not valid UTF-8, as JSON must be. Reading stopped; nothing was "
            "published. Tell the service's operators which record it is."
        )


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


# These make what `pa.array` makes. It would look at the type of every value, and import pandas before the first one.


def _binary(values: list[bytes]) -> pa.Array[Any]:
    ends = array("i", accumulate(map(len, values), initial=0))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def _integers(values: list[int | None]) -> pa.Array[Any]:
    try:
        numbers = array("q", cast("list[int]", values))
    except TypeError:  # a record without an id
        return pa.array(values, pa.int64())
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(numbers)])
