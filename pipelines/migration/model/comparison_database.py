"""The DuckDB in which two libraries are compared, table against table, and the rows that are put into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipelines.migration.model.comparable import ComparableLibrary
from pipelines.records.batches import Row, batch_of_rows
from pipelines.records.tables.description import Table
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import connect_duckdb

DATABASE = "comparison.duckdb"
"""The file of a comparison, in its folder."""


@contextmanager
def comparison_database(folder: Path, sides: Mapping[str, ComparableLibrary]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with the views of each side, by name. Its files are in `folder`."""
    limits: dict[str, Any] = {
        "memory_limit": "900MB",
        "threads": 2,
        "preserve_insertion_order": False,
        "temp_directory": str(folder / "spilled"),
    }
    with storage_errors(folder), connect_duckdb(folder / DATABASE, **limits) as database:
        for name, side in sides.items():
            for view in side.views(name):
                database.execute(view)
        yield database


@contextmanager
def read_comparison(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the closed database of a comparison for reading, with the little memory that takes."""
    limits: dict[str, Any] = {
        "memory_limit": "256MB",
        "threads": 1,
        "temp_directory": str(folder / "spilled"),
    }
    path = folder / DATABASE
    with storage_errors(folder), connect_duckdb(path, read_only=True, **limits) as database:
        yield database


def create_table(database: duckdb.DuckDBPyConnection, table: Table, batches: Iterable[pa.RecordBatch] = ()) -> None:
    """Create a table with these rows."""
    _from_batches(database, f"CREATE TABLE {table.name} AS FROM given", table, batches)


def append_rows(database: duckdb.DuckDBPyConnection, table: Table, rows: list[Row]) -> None:
    """Append rows to a table."""
    batch = batch_of_rows(table, rows)
    _from_batches(database, f"INSERT INTO {table.name} FROM given", table, [batch])


def _from_batches(
    database: duckdb.DuckDBPyConnection, statement: str, table: Table, batches: Iterable[pa.RecordBatch]
) -> None:
    database.register("given", pa.RecordBatchReader.from_batches(table.schema, iter(batches)))
    database.execute(statement)
    database.unregister("given")
