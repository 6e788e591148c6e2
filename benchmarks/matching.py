"""How long a migration takes to match the records of two libraries, and to find the action for each.

    .venv/bin/python -m benchmarks.matching                     # 1,000,000 against 1,000,000 publications: some minutes
    .venv/bin/python -m benchmarks.matching --records 20000 --json

Nine tenths of the generated records are in both libraries, under other ids and with the same DOI; in one percent the abstract was edited.
`laid out` is the reading and normalising of both raw tables, in a process for each side. `matched and classified` is the work of DuckDB on
the result. Memory is that of this process, which does the second part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from benchmarks.machine import in_words
from benchmarks.publications import BLOCK, Publications
from pipelines.migration.plan.comparison import compare_libraries, normalise_both
from pipelines.records.tables.registry import raw_table
from pipelines.store.parquet import table_writer

APART = 5_000_000
"""Distance between the ids of the two libraries."""

STEP = 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how fast two libraries are matched and merged.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), arguments.records)
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"{in_words()}\n\n{figures['records']:,} against {figures['records']:,} publications")
    for name in ("laid_out", "matched_and_classified"):
        print(f"{name.replace('_', ' '):<24}{figures[f'{name}_seconds']:>8.1f} s")
    print(f"{'peak':<24}{figures['peak_mib']:>8,} MiB\n{figures['actions']}")


def measure(folder: Path, records: int) -> dict[str, Any]:
    """Make both libraries, normalise, match and classify."""
    one, other = folder / "one.parquet", folder / "other.parquet"
    make_raw(one, records, first=0, edited=False)
    make_raw(other, records, first=records // 10, edited=True)
    begun = time.perf_counter()
    source, target = normalise_both(one, other, folder)
    laid_out = time.perf_counter() - begun
    begun = time.perf_counter()
    with compare_libraries(source, target, folder) as database:
        matched = time.perf_counter() - begun
        rows = database.execute("SELECT action, count(*) FROM merged GROUP BY ALL ORDER BY ALL").fetchall()
    return {
        "records": records,
        "laid_out_seconds": round(laid_out, 2),
        "matched_and_classified_seconds": round(matched, 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "actions": dict(rows),
    }


def make_raw(path: Path, records: int, *, first: int, edited: bool) -> None:
    """The raw table of a generated library. Each publication has its own DOI."""
    table, publications = raw_table("publications"), Publications(first + records)
    with table_writer(path, table) as writer:
        for start in range(0, records, STEP):
            numbers = range(start, min(start + STEP, records))
            made = [
                _record(raw, first + number + 1, edited=edited)
                for block in range(start, numbers.stop, BLOCK)
                for number, raw in enumerate(_block(publications, first + block), block)
                if number < numbers.stop
            ]
            columns = [
                pa.array([number for number, _json in made], pa.int64()),
                pa.array([start // STEP + 1] * len(made), pa.int32()),
                pa.array([text.decode() for _number, text in made]),
                pa.array([hashlib.sha256(text).hexdigest() for _number, text in made]),
            ]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=table.schema))


def _block(publications: Publications, start: int) -> list[dict[str, Any]]:
    return msgspec.json.decode(b"[" + publications.json(start, start + BLOCK) + b"]", type=list[dict[str, Any]])


def _record(record: dict[str, Any], number: int, *, edited: bool) -> tuple[int, bytes]:
    record["title"] = f"{record['title']} {number}"
    for name in ("arxiv_id", "pmid", "issn", "isbn", "doi"):
        record.pop(name, None)
    record["identifiers"] = [{"type": "doi", "value": f"10.5555/{number}"}]
    if edited and number % 100 == 0:
        record["abstract"] = "Edited by somebody"
    record["id"] = number + APART * edited
    return record["id"], msgspec.json.encode(record)


if __name__ == "__main__":
    main()
