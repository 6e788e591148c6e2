"""Writes the rows of a query as JSON, as CSV or .xlsx for spreadsheets, or as Parquet, batch by batch."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from cli.output import json_text, write
from pipelines.errors import BookferryError, ConfigurationError
from pipelines.records.text_table_cells import safe_cell
from pipelines.report.workbook import Cell, columns_for, open_workbook
from pipelines.store.durable import replacing, storage_error, storage_errors

Rows = Sequence[tuple[object, ...]]

BATCH_ROWS = 10_000
"""Rows in memory at a time."""

WIDTH_ROWS = 200
"""Rows by which the columns of a workbook get their widths."""

EXACT_DIGITS = 15
"""Digits of a number that a spreadsheet keeps; a decimal number with more is text."""

BYTE_ORDER_MARK = "\ufeff"
"""Without it Excel does not recognise UTF-8."""


def write_rows_as_json(
    columns: Sequence[str], batches: Iterator[Rows], *, not_read: Mapping[str, Sequence[str]]
) -> BookferryError | None:
    """Write one JSON document with a line for each row. An error ends the document with the key `error`, and is returned.

    `not_read`: table → tenants without a complete snapshot that has it.
    """
    first = next(batches, ())  # an error before the first row is raised: nothing has been written yet
    write(f'{{\n  "columns": {json_text(columns)},\n  "rows": [')
    count, failure = _write_rows(columns, first, 0), None
    try:
        for rows in batches:
            count = _write_rows(columns, rows, count)
    except BookferryError as error:
        failure = error
    write("\n  ]" if count else "]")
    ends = {
        "count": count,
        **({"not_read": not_read} if not_read else {}),
        **({"error": str(failure), "exit_status": int(failure.exit_status)} if failure else {}),
    }
    write("".join(f',\n  "{name}": {json_text(value)}' for name, value in ends.items()) + "\n}\n")
    return failure


def _write_rows(columns: Sequence[str], rows: Rows, before: int) -> int:
    lines = [json_text(dict(zip(columns, row, strict=True))) for row in rows]
    if lines:
        write(("," if before else "") + ",".join(f"\n    {line}" for line in lines))
    return before + len(lines)


def write_csv(write: Callable[[str], object], columns: Sequence[str], batches: Iterator[Rows]) -> int:
    """Write CSV (RFC 4180). No cell can be a formula of a spreadsheet (I13). Returns the number of rows."""
    count = 0
    write(BYTE_ORDER_MARK + _lines([columns]))
    for rows in batches:
        write(_lines(rows))
        count += len(rows)
    return count


def write_csv_file(path: Path, columns: Sequence[str], batches: Iterator[Rows]) -> int:
    """Write the same to a file in UTF-8, which appears when it is complete. Returns the number of rows."""
    with storage_errors(path), replacing(path) as file:
        return write_csv(lambda text: file.write(text.encode()), columns, batches)


def _lines(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def write_xlsx(path: Path, columns: Sequence[str], batches: Iterator[Rows]) -> int:
    """Write the rows to a workbook, which appears when it is complete. Returns the number of rows."""
    first = [[_workbook_cell(value) for value in row] for row in next(batches, ())]
    with open_workbook(path, "Result", columns_for(columns, first[:WIDTH_ROWS])) as book:
        for cells in first:
            book.write(cells)
        for rows in batches:
            for row in rows:
                book.write([_workbook_cell(value) for value in row])
        return book.rows


def _workbook_cell(value: object) -> Cell:
    """Dates are text: a spreadsheet has none before 1900."""
    if isinstance(value, Decimal) and len(value.as_tuple().digits) <= EXACT_DIGITS:
        return float(value)
    return value if value is None or isinstance(value, bool | int | float | str) else _text(value)


def _cell(value: object) -> str | int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return "" if value is None else safe_cell(_text(value))


def _text(value: object) -> str:
    plain = msgspec.to_builtins(value, enc_hook=str)
    return plain if isinstance(plain, str) else json_text(plain)


def write_parquet(path: Path, answer: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> int:
    """Write the rows to a Parquet file, which appears when it is complete. Returns the number of rows."""
    reader, count = answer.to_arrow_reader(BATCH_ROWS), 0
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, columns, strict=True)])
    try:
        with replacing(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                count += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise ConfigurationError(
            f"Parquet cannot store a column of the result ({error}). Cast it to VARCHAR."
        ) from None
    except OSError as error:
        if error.errno is None:  # an error of DuckDB, passed on by Arrow
            raise duckdb.Error(str(error)) from None
        raise storage_error(error, path) from error
    return count
