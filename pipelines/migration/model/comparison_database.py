"""The DuckDB in which two libraries are compared, table against table, and the rows that are put into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from pipelines.migration.model.comparable import Side
from pipelines.records.batches import Row, batch_of_rows
from pipelines.records.tables.description import Table
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import bounded_duckdb


@contextmanager
def comparison_database(folder: Path, sides: Mapping[str, Side]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with the views of each side, by name. What does not fit into memory is in `folder`."""
    with storage_errors(folder), bounded_duckdb("900MB", 2, folder / ".spilled") as database:
        database.execute("SET preserve_insertion_order = false")
        for name, side in sides.items():
            for view in side.views(name):
                database.execute(view)
        yield database


def create_table(database: duckdb.DuckDBPyConnection, table: Table, batches: Iterable[pa.RecordBatch] = ()) -> None:
    """Create a table with these rows."""
    _from_batches(database, f"CREATE OR REPLACE TABLE {table.name} AS FROM given", table, batches)


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
