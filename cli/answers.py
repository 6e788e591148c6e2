"""The forms that the rows of a query are given in: JSON, CSV for spreadsheets, Parquet. They are written as the rows come."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from cli.output import Output
from pipelines.errors import BookferryError, ConfigurationError
from pipelines.records.spreadsheets import safe_cell
from pipelines.store.durable import storage_error

Rows = Sequence[tuple[object, ...]]

BATCH_ROWS = 10_000
"""Rows that are in memory at once."""

BYTE_ORDER_MARK = "\ufeff"
"""Without it Excel takes UTF-8 for another encoding."""


def write_json(output: Output, columns: Sequence[str], batches: Iterator[Rows]) -> BookferryError | None:
    """One JSON document, a line for each row. An error on the way ends the document, which then has `error`; it is returned."""
    first = next(batches, ())  # an error before the first row needs no document of this form
    output.write(f'{{\n  "columns": {_json(columns)},\n  "rows": [')
    count, failure = _write_rows(output, columns, first, 0), None
    try:
        for rows in batches:
            count = _write_rows(output, columns, rows, count)
    except ConfigurationError as error:
        failure = error
    output.write("\n  ]" if count else "]")
    ends = {"count": count, **({"error": str(failure), "exit_status": int(failure.exit_status)} if failure else {})}
    output.write("".join(f',\n  "{name}": {_json(value)}' for name, value in ends.items()) + "\n}\n")
    return failure


def _write_rows(output: Output, columns: Sequence[str], rows: Rows, before: int) -> int:
    lines = [_json(dict(zip(columns, row, strict=True))) for row in rows]
    if lines:
        output.write(("," if before else "") + ",".join(f"\n    {line}" for line in lines))
    return before + len(lines)


def write_csv(output: Output, columns: Sequence[str], batches: Iterator[Rows]) -> None:
    """As RFC 4180 has it, in UTF-8, with no cell that a spreadsheet would take for a formula (I13)."""
    output.write(BYTE_ORDER_MARK + _lines([columns]))
    for rows in batches:
        output.write(_lines(rows))


def _lines(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    plain = value if isinstance(value, str) else msgspec.to_builtins(value, enc_hook=str)
    return safe_cell(plain if isinstance(plain, str) else _json(plain))


def _json(value: object) -> str:
    """On one line. What JSON has no word for becomes text; infinite numbers and NaN become null."""
    return msgspec.json.encode(value, enc_hook=str).decode()


def write_parquet(path: Path, answer: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> int:
    """The rows as a Parquet file, which is there once it is whole; how many they are."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    reader = answer.to_arrow_reader(BATCH_ROWS)
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, columns, strict=True)])
    count = 0
    try:
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                count += batch.num_rows
        unfinished.replace(path)
    except pa.ArrowNotImplementedError as error:
        raise ConfigurationError(
            f"Parquet has no form for a column of the answer ({error}). Cast it to VARCHAR."
        ) from None
    except OSError as error:
        if error.errno is None:  # DuckDB's own, by way of Arrow
            raise duckdb.Error(str(error)) from None
        raise storage_error(error, path) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return count
