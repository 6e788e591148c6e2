"""Raw records as rows: the JSON of each record byte for byte, its id, its page and its SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from pipelines.errors import ProtocolError


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
        """All records as rows of the raw table. Raises `ProtocolError` if one is not UTF-8."""
        try:
            payloads = pa.array(self.payloads, pa.string())  # checks UTF-8
        except pa.ArrowInvalid:
            raise self._not_text() from None
        columns: dict[str, list[Any]] = {
            "id": self._ids,
            "page": self._pages,
            "sha256": self.hashes,
            "owner": self._owners,
        }
        arrays = [
            payloads if field.name == "payload" else pa.array(columns[field.name], field.type) for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _not_text(self) -> ProtocolError:
        index = next(index for index, payload in enumerate(self.payloads) if not _is_utf8(payload))
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
