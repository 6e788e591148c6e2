"""The blobs that snapshots refer to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow.parquet as pq

from pipelines.store.durable import storage_errors
from pipelines.store.parquet import bounded_duckdb, escaped
from pipelines.store.snapshots.snapshots import DataFolder


@contextmanager
def referenced_blobs(data: DataFolder, tables: list[str]) -> Iterator[Iterator[tuple[str, int | None]]]:
    """Yields the SHA-256 and size of every blob in some `publication_files` tables, each once, sorted. `tables`: their keys."""
    addresses = [escaped(data.objects.address_of(table)) for table in tables if _names_blobs(data, table)]
    if not addresses:
        yield iter(())
        return
    spilled = data.path / f".spilled-{os.getpid()}"
    sql = "SELECT sha256, any_value(bytes) FROM files WHERE sha256 IS NOT NULL GROUP BY sha256 ORDER BY sha256"
    with storage_errors(data.path), bounded_duckdb("256MB", 1, spilled) as database:
        data.objects.attach(database)
        database.read_parquet(addresses, union_by_name=True).create_view("files")
        result = database.execute(sql)
        yield (row for rows in iter(lambda: result.fetchmany(1000), []) for row in rows)


def _names_blobs(data: DataFolder, table: str) -> bool:
    """Whether a table names blobs; the first snapshots had no such column."""
    with storage_errors(data.objects.address_of(table)), data.objects.open(table) as file:
        return "sha256" in pq.read_schema(file).names
