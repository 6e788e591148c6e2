"""Removes the duplicates of a raw file. They arise when pages are read again because the collection moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.records.tables.registry import raw_table
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey
from pipelines.store.parquet import open_in_duckdb, open_table, table_writer
from pipelines.store.snapshots.captures import TEXT_ID


class DuplicateIds(msgspec.Struct):
    """The rows that were removed because a later page had the same record."""

    rows: int = 0
    apart: int = 0
    """The greatest distance, in pages, between two places of one record."""


def drop_duplicates(path: Path, resource: str, key: PersonalKey | None, *, text_ids: bool) -> DuplicateIds:
    """Keep the last row of each record in a raw file, in its place. `text_ids`: as for `count_ids`."""
    with open_in_duckdb(path, key) as database:
        record_key = f"COALESCE(CAST(id AS VARCHAR), {TEXT_ID})" if text_ids else "id"
        places = f"SELECT {record_key} AS key, page, row_number() OVER () - 1 AS place FROM file"  # noqa: S608  an expression of ours
        database.execute(f"CREATE VIEW rows AS {places}")
        database.execute(
            "CREATE TABLE repeated AS SELECT key, max(place) AS newest, max(page) - min(page) AS apart FROM rows "
            "WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1"
        )
        database.execute("SELECT place FROM rows JOIN repeated USING (key) WHERE place <> newest ORDER BY place")
        dropped = pa.array(database.fetchnumpy()["place"], pa.int64())
        [(apart,)] = database.execute("SELECT coalesce(max(apart), 0) FROM repeated").fetchall()
    if len(dropped):
        _rewrite_without(path, dropped, resource, key)
    return DuplicateIds(len(dropped), apart)


def _rewrite_without(path: Path, dropped: pa.Array[Any], resource: str, key: PersonalKey | None) -> None:
    """Rewrite a raw file without some rows, one row group at a time."""
    rewritten, start = path.with_suffix(".rewritten"), 0
    with (
        storage_errors(path),
        open_table(path, key) as file,
        table_writer(rewritten, raw_table(resource), key) as writer,
    ):
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group)
            places = pa.array(range(start, start + rows.num_rows), pa.int64())
            writer.write(rows.filter(pc.invert(pc.is_in(places, dropped))))
            start += rows.num_rows
    rewritten.replace(path)
