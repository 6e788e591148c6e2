"""Copies a table of a snapshot into the database: Parquet, Arrow batches, binary COPY. Memory does not grow with it (I11)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.records.tables.description import Table
from pipelines.store.parquet import row_batches
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

REPLACEMENT = "\ufffd"
"""Replaces the character NUL, which no text in Postgres can have. The Parquet tables and the raw payload keep it."""

BATCH_BYTES = 512 * 1024
"""Bytes of a batch that the driver encodes at once. A whole row group would not fit into the processor's cache."""

_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


class CopiedRows:
    """What was copied of a table."""

    def __init__(self) -> None:
        self.rows = 0
        self.replaced = 0
        """Values with a NUL."""
        self.keyless = ""
        """A sentence about rows without a key of their own."""
        self.error: BaseException | None = None
        """An error of making batches. The driver reports such errors in its own words only."""


def copy_table(cursor: Any, schema: str, table: Table, data: DataFolder, snapshot: Snapshot) -> CopiedRows:
    """Append the rows of a table. Columns that the file lacks stay empty."""
    copied = CopiedRows()
    with data.open_table(snapshot, table.name) as file:
        columns = [column for column in table.columns if column.name in file.schema_arrow.names]
        arrow_schema = pa.schema([(column.name, pa.json_() if column.json else column.type) for column in columns])
        batches = row_batches(file, arrow_schema.names)
        stream = pa.RecordBatchReader.from_batches(arrow_schema, _converted_batches(batches, arrow_schema, copied))
        try:
            cursor.adbc_ingest(table.name, stream, mode="append", db_schema_name=schema)
        except Exception:
            if copied.error is not None:
                raise copied.error from None
            raise
    return copied


def _converted_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, copied: CopiedRows
) -> Iterator[pa.RecordBatch]:
    """Batches in the types of the database."""
    try:
        for batch in batches:
            columns = [_converted_column(batch.column(field.name), field.type, copied) for field in schema]
            converted = pa.RecordBatch.from_arrays(columns, schema=schema)
            rows = max(1, batch.num_rows * BATCH_BYTES // max(1, converted.nbytes))
            for first in range(0, batch.num_rows, rows):
                yield converted.slice(first, rows)
            copied.rows += batch.num_rows
    except BaseException as error:
        copied.error = error
        raise


def _converted_column(values: Any, data_type: pa.DataType, copied: CopiedRows) -> Any:
    """Converts a column for Postgres."""
    if data_type == pa.json_():
        return pa.ExtensionArray.from_storage(data_type, _replaced(values.cast(pa.string()), r"\u0000", copied))
    values = values.cast(data_type)
    return _replaced(values, "\x00", copied) if pa.types.is_string(data_type) and _may_hold_nul(values) else values


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
