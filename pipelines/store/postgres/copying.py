"""Copies a table of a snapshot into the database: Parquet, Arrow, CSV, COPY. Memory does not grow with it (I11)."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pipelines.records.tables.description import Column, Table
from pipelines.store.parquet import quoted, row_batches
from pipelines.store.postgres.definitions import column_list
from pipelines.store.postgres.server import Session
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

REPLACEMENT = "\ufffd"
"""Replaces the character NUL, which no text in Postgres can have. The Parquet tables and the raw payload keep it."""

_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")

_WITHOUT_NAMES = csv.WriteOptions(include_header=False)


class CopiedRows:
    """What was copied of a table."""

    def __init__(self) -> None:
        self.rows = 0
        self.replaced = 0
        """Values with a NUL."""
        self.keyless = ""
        """A sentence about rows without a key of their own."""


def copy_table(session: Session, schema: str, table: Table, data: DataFolder, snapshot: Snapshot) -> CopiedRows:
    """Append the rows of a table. Columns that the file lacks stay empty."""
    copied = CopiedRows()
    with data.open_table(snapshot, table.name) as file:
        columns = [column for column in table.columns if column.name in file.schema_arrow.names]
        names = [column.name for column in columns]
        batches = (_as_csv(batch, columns, copied) for batch in row_batches(file, names))
        session.copy(f"{quoted(schema, table.name)} ({column_list(names)})", batches)
    return copied


def _as_csv(batch: pa.RecordBatch, columns: list[Column], copied: CopiedRows) -> bytes:
    """Rows as Postgres reads them: each text in quotes, so that an empty one is not NULL."""
    values = [_converted_column(batch.column(column.name), column, copied) for column in columns]
    rows = pa.BufferOutputStream()
    csv.write_csv(pa.record_batch(values, names=[column.name for column in columns]), rows, _WITHOUT_NAMES)
    copied.rows += batch.num_rows
    return rows.getvalue().to_pybytes()


def _converted_column(values: Any, column: Column, copied: CopiedRows) -> Any:
    """A column in the type of its description, without NUL."""
    values = values.cast(column.type)
    if column.json:
        return _replaced(values, r"\u0000", copied)
    return _replaced(values, "\x00", copied) if pa.types.is_string(column.type) and _may_hold_nul(values) else values


def _may_hold_nul(texts: Any) -> bool:
    """Whether a column has a NUL, by its bytes: usually it has none, and checking each text would take a third of the copy's time."""
    _, _, content = texts.buffers()
    return content is not None and pc.min(pa.Array.from_buffers(pa.uint8(), content.size, [None, content])).as_py() == 0


def _replaced(values: Any, nul: str, copied: CopiedRows) -> Any:
    matches = pc.match_substring(values, nul)
    count = pc.sum(matches).as_py() or 0
    if not count:
        return values
    texts = [text if text is None or nul not in text else _without_nul(text, nul) for text in values.to_pylist()]
    copied.replaced += sum(old != new for old, new in zip(values.to_pylist(), texts, strict=True))
    return pa.array(texts, values.type)


def _without_nul(text: str, nul: str) -> str:
    return text.replace(nul, REPLACEMENT) if nul == "\x00" else _ESCAPED_NUL.sub(rf"\1{REPLACEMENT}", text)
