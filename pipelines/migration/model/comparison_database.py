"""The DuckDB in which two libraries are compared, table against table, and the rows that are put into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa

from pipelines.migration.model.comparable import STEP, Side
from pipelines.records.batches import Row, batch_of_rows
from pipelines.records.tables.description import Column, Table
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import bounded_duckdb

_Row = TypeVar("_Row")


@contextmanager
def comparison_database(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database for the tables of one resource after the other. What does not fit into memory is in `folder`."""
    with storage_errors(folder), bounded_duckdb("900MB", 2, folder / ".spilled") as database:
        database.execute("SET preserve_insertion_order = false")
        yield database


def create_views(database: duckdb.DuckDBPyConnection, **sides: Side) -> None:
    """Create the views of each side, by name."""
    for name, side in sides.items():
        for view in side.views(name):
            database.execute(view)


def scratch_table(name: str, columns: Mapping[str, pa.DataType]) -> Table:
    """A table for the length of a comparison."""
    return Table(name, "", (), tuple(Column(column, kind, "") for column, kind in columns.items()))


def create_table(database: duckdb.DuckDBPyConnection, table: Table, rows: Iterable[Row] = ()) -> None:
    """Create a table with these rows, whose values are in the order of its columns."""
    _from_rows(database, f"CREATE OR REPLACE TABLE {table.name} AS FROM given", table, rows)


def append_rows(database: duckdb.DuckDBPyConnection, table: Table, rows: Iterable[Row]) -> None:
    """Append rows to a table."""
    _from_rows(database, f"INSERT INTO {table.name} FROM given", table, rows)


def _from_rows(database: duckdb.DuckDBPyConnection, statement: str, table: Table, rows: Iterable[Row]) -> None:
    database.register("given", pa.RecordBatchReader.from_batches(table.schema, batches_of(table, rows)))
    database.execute(statement)
    database.unregister("given")


def batches_of(table: Table, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows, in the order of the table's columns, as Arrow batches."""
    for step in in_steps(rows):
        yield batch_of_rows(table, step)


def in_steps(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Rows, at most `STEP` at a time."""
    remaining = iter(rows)
    while step := list(islice(remaining, STEP)):
        yield step
