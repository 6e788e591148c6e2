"""One side of a migration in comparable form: for each record of a resource what is compared and sent, and the keys that it is matched by.

The form of a record is one document, which only Python reads; that of a person is sealed (`PersonalKey`). DuckDB sees ids and keys alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.records.tables.description import Column, Table
from pipelines.records.values import RecordId, record_id
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey
from pipelines.store.parquet import escaped, literal, row_batches

_IDS = frozenset({"id", "source_id", "target_id"})
STEP = 2000
"""Records in memory at once."""

_TEXT = pa.string()
RECORDS = Table(
    "records",
    "One row for each record, in the order of its library.",
    ("id",),
    (
        Column("id", _TEXT, "The service's identifier of the record.", required=True),
        Column(
            "content",
            _TEXT,
            "Digest of the compared fields, of publications except references, which are valid in their own library only. "
            "Of persons, keyed.",
        ),
        Column(
            "files", _TEXT, "Id, cover and assets of the record without their addresses: JSON, empty where it has none."
        ),
        Column("form", pa.binary(), "`Form` as JSON; sealed where it is personal.", required=True),
    ),
)
KEYS = Table(
    "keys",
    "One row for each key of a record: an identifier, a name, the fingerprint of a publication.",
    (),
    (
        Column("id", _TEXT, "The record.", required=True),
        Column("stage", _TEXT, "The kind of evidence: one of `Resource.stages`.", required=True),
        Column("type", _TEXT, "Kind of identifier; else the stage.", required=True),
        Column("value", _TEXT, "Its canonical value; of persons, a keyed digest.", required=True),
    ),
)
CONTENT = "content"
"""The stage whose key is the column `content`."""


class Form(msgspec.Struct, omit_defaults=True):
    """What is compared and sent of a record; references are ids of its own library."""

    values: dict[str, Any]
    """Field → value as it is sent; an empty field is absent."""
    unsent: dict[str, Any] = {}
    """Path → value that is not sent, and in `why` the code of the reason."""
    why: dict[str, str] = {}
    empty: dict[str, Any] = {}
    """Field → empty text or list, which equals null in every comparison."""

    @property
    def whole(self) -> dict[str, Any]:
        """The values with the empty ones, as the record has them."""
        return self.values | self.empty if self.empty else self.values


@dataclass(frozen=True)
class Side:
    """The records of one resource of one library, in a folder. `key` seals their forms."""

    folder: Path
    resource: str
    key: PersonalKey | None = None

    def path(self, table: Table) -> Path:
        """The file of one of its tables."""
        return self.folder / f"{self.resource}{'' if table is RECORDS else f'-{table.name}'}.parquet"

    @property
    def exists(self) -> bool:
        """Whether it was written."""
        return self.path(RECORDS).is_file()

    @property
    def records(self) -> int:
        """The number of records."""
        with storage_errors(self.folder), pq.ParquetFile(self.path(RECORDS)) as file:
            return int(file.metadata.num_rows)

    def views(self, name: str) -> Iterator[str]:
        """Yield SQL that creates the views `name` and `name_keys`; the second has the digest of the content, too."""
        records, keys = (f"read_parquet({literal(escaped(self.path(table)))}" for table in (RECORDS, KEYS))
        yield (
            f"CREATE OR REPLACE VIEW {name} AS SELECT id, content, files, form, file_row_number AS place "  # noqa: S608
            f"FROM {records}, file_row_number = true)"
        )
        yield (
            f"CREATE OR REPLACE VIEW {name}_keys AS FROM {keys}) UNION ALL "  # noqa: S608
            f"SELECT id, '{CONTENT}', '{CONTENT}', content FROM {records}) WHERE content IS NOT NULL"
        )

    @property
    def decode(self) -> Callable[[bytes], Form]:
        """Decodes a cell of the column `form`."""
        if (key := self.key) is None:
            return _FORM.decode
        return lambda sealed: _FORM.decode(key.unseal(sealed))

    def encode(self, form: Form) -> bytes:
        """A cell of the column `form`."""
        text = msgspec.json.encode(form)
        return text if self.key is None else self.key.seal(text)

    def rows(self, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield these columns of each record, in order; `STEP` records are in memory."""
        with storage_errors(self.folder), pq.ParquetFile(self.path(RECORDS)) as file:
            for batch in row_batches(file, columns, STEP):
                yield from cells_of(batch, columns)

    def ids_among(self, ids: Collection[RecordId]) -> set[RecordId]:
        """Returns those of the ids that the side has."""
        return {number for (number,) in self._among(ids, "id")}

    def forms(self, ids: Collection[RecordId]) -> dict[RecordId, Form]:
        """Id → form, of those records that the side has."""
        decode = self.decode
        return {number: decode(form) for number, form in self._among(ids, "id", "form")}

    def files(self, ids: Collection[RecordId]) -> dict[RecordId, str]:
        """Id → the column `files`, of those records that have files."""
        return {number: text for number, text in self._among(ids, "id", "files") if text}

    def _among(self, ids: Collection[RecordId], *columns: str) -> Sequence[tuple[Any, ...]]:
        if not ids:
            return []
        texts = [*map(str, ids)]
        in_range = (pc.field("id") >= min(texts)) & (pc.field("id") <= max(texts))  # skips most row groups
        with storage_errors(self.folder):
            filters = in_range & pc.field("id").isin(texts)
            table = pq.read_table(self.path(RECORDS), columns=list(columns), filters=filters)
        return [*cells_of(table, columns)]


def cells_of(rows: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of some columns, row by row; ids are decoded."""
    cells = (rows.column(name).to_pylist() for name in columns)
    yield from zip(
        *(map(record_id, column) if name in _IDS else column for name, column in zip(columns, cells, strict=True)),
        strict=True,
    )


def digest(text: str | None) -> str | None:
    """The digest of a field in the journal, which later shows who changed it: DuckDB's md5_number of its JSON, in decimal digits."""
    if text is None:
        return None
    return str(int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest(), "little"))


_FORM = msgspec.json.Decoder(Form)
