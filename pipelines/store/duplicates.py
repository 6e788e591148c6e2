"""Removes the duplicates of a raw file, and adds the records that only an earlier walk read. Both arise where the collection moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.records.tables.registry import raw_table
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey
from pipelines.store.parquet import create_view, escaped, open_in_duckdb, open_table, table_writer
from pipelines.store.snapshots.captures import TEXT_ID


def drop_duplicates(path: Path, resource: str, key: PersonalKey | None, *, text_ids: bool) -> int:
    """Keep the last row of each record in a raw file, in its place; return the number of the others. `text_ids`: as for `count_ids`."""
    with open_in_duckdb(path, key) as database:
        places = f"SELECT {_record_key(text_ids=text_ids)} AS key, row_number() OVER () - 1 AS place FROM file"  # noqa: S608  an expression of ours
        database.execute(f"CREATE VIEW rows AS {places}")
        database.execute(
            "CREATE TABLE repeated AS SELECT key, max(place) AS newest FROM rows "
            "WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1"
        )
        database.execute("SELECT place FROM rows JOIN repeated USING (key) WHERE place <> newest ORDER BY place")
        dropped = pa.array(database.fetchnumpy()["place"], pa.int64())
    if len(dropped):
        _rewrite(path, resource, key, [(path, dropped, False)])
    return len(dropped)


def add_missing(path: Path, earlier: Path, resource: str, key: PersonalKey | None, *, text_ids: bool) -> int:
    """Append the records of another raw file that this one lacks, each in its newest form. Return their number.

    A record without an id is the same record where its bytes are the same. `text_ids`: as for `count_ids`.
    """
    record_key = f"COALESCE(CAST({_record_key(text_ids=text_ids)} AS VARCHAR), sha256)"
    with open_in_duckdb(path, key) as database:
        create_view(database, "earlier", escaped(earlier), key)
        places = f"SELECT {record_key} AS key, row_number() OVER () - 1 AS place FROM earlier"  # noqa: S608  an expression of ours
        present = f"SELECT {record_key} FROM file"  # noqa: S608  an expression of ours
        database.execute(
            f"SELECT max(place) AS place FROM ({places}) WHERE key NOT IN ({present}) GROUP BY key ORDER BY place"  # noqa: S608
        )
        missing = pa.array(database.fetchnumpy()["place"], pa.int64())
    if len(missing):
        _rewrite(path, resource, key, [(path, missing[:0], False), (earlier, missing, True)])
    return len(missing)


def _record_key(*, text_ids: bool) -> str:
    return f"COALESCE(CAST(id AS VARCHAR), {TEXT_ID})" if text_ids else "id"


def _row_groups(path: Path, key: PersonalKey | None) -> Iterator[tuple[int, pa.Table]]:
    """Yields the row groups of a file, each with the number of rows before it."""
    start = 0
    with open_table(path, key) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group)
            yield start, rows
            start += rows.num_rows


def _rewrite(path: Path, resource: str, key: PersonalKey | None, parts: Sequence[tuple[Path, Any, bool]]) -> None:
    """Rewrite a raw file, one row group at a time. `parts`: a file, some places in it, and whether these are kept, or all others."""
    import pyarrow.compute as pc  # noqa: PLC0415  its import takes long, and hardly a list has duplicates

    rewritten = path.with_suffix(".rewritten")
    with storage_errors(path), table_writer(rewritten, raw_table(resource), key) as writer:
        for source, places, keeps_them in parts:
            for start, rows in _row_groups(source, key):
                is_named = pc.is_in(pa.array(range(start, start + rows.num_rows), pa.int64()), places)
                writer.write(rows.filter(is_named if keeps_them else pc.invert(is_named)))
    rewritten.replace(path)
