"""The blobs that snapshots refer to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from pipelines.store.durable import storage_errors
from pipelines.store.parquet import escaped
from pipelines.store.snapshots.snapshots import DataFolder


@contextmanager
def referenced_blobs(data: DataFolder, tables: list[str]) -> Iterator[Iterator[tuple[str, int | None]]]:
    """Yields the SHA-256 and size of every blob in some `publication_files` tables, each once, sorted.

    DuckDB sorts, and spills to disk rather than use more memory.
    """
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "256MB",
        "threads": 1,
        "temp_directory": str(data.path / f".spilled-{os.getpid()}"),
    }
    sql = "SELECT sha256, any_value(bytes) FROM files WHERE sha256 IS NOT NULL GROUP BY sha256 ORDER BY sha256"
    with storage_errors(data.path), duckdb.connect(config=limits) as database:
        data.objects.attach(database)
        database.read_parquet([escaped(path) for path in tables], union_by_name=True).create_view("files")
        result = database.execute(sql)
        yield (row for rows in iter(lambda: result.fetchmany(1000), []) for row in rows)
