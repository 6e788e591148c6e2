"""Raw records as rows: the JSON of each record byte for byte, its id, its page and its SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa


class RawRecords:
    """The records of some pages, collected for a raw table."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes of JSON."""
        self.payloads: list[bytes] = []
        self.hashes: list[str] = []
        """The SHA-256 of each record in hexadecimal."""
        self._ids: list[int | None] = []
        self._pages: list[int | None] = []
        self._owners: list[str] = []

    def add(self, records: Sequence[msgspec.Raw], ids: Sequence[int | None], page: int, owner: str = "") -> None:
        """Add the records of one page, with the id of each. `owner`: the id of the record whose list it is.

        The hashes are computed here, while the records are in the processor's cache. The thread that compresses and writes would need the
        interpreter lock once for each record.
        """
        payloads = [*map(bytes, records)]
        self.size += sum(map(len, payloads))
        self.payloads += payloads
        self._ids += ids
        self._pages += [page] * len(records)
        self._owners += [owner] * len(records)
        self.hashes += [hashlib.sha256(payload).hexdigest() for payload in payloads]

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """All records as rows of the raw table."""
        columns: dict[str, list[Any]] = {
            "id": self._ids,
            "page": self._pages,
            "payload": self.payloads,
            "sha256": self.hashes,
            "owner": self._owners,
        }
        return pa.RecordBatch.from_arrays(
            [pa.array(columns[field.name], field.type) for field in schema], schema=schema
        )
