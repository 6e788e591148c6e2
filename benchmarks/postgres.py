"""How fast a snapshot is loaded into Postgres, compared with pandas.to_sql, on one server in one run.

    .venv/bin/python -m benchmarks.postgres                     # 1,000,000 publications, all their tables: some minutes
    .venv/bin/python -m benchmarks.postgres --records 20000 --pandas 2000

`bookferry` is the whole load: rows, keys, indexes, statistics and the swap of the tables. `bookferry rows` is the comparable part, the rows
alone. `pandas` is `to_sql` of the same tables, also without keys, from data frames in memory. It loads fewer publications, because its rate
does not depend on their number, once with its defaults and once with `method="multi"`; the faster one counts. Each peer is a process of its
own, on a database of its own; its memory is watched from outside.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.dataset as ds
import sqlalchemy as sa

from benchmarks.machine import MemoryWatch, in_words
from benchmarks.publications import BLOCK, Publications
from pipelines.backup import files, staging
from pipelines.records.raw import RawRecords
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import STAGED, raw_table
from pipelines.store.postgres.copying import copy_table
from pipelines.store.postgres.definitions import create_table
from pipelines.store.postgres.loading import PARALLEL_TABLES, Database
from pipelines.store.postgres.server import Server
from pipelines.store.snapshots.captures import Capture, ResourceFacts
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.snapshots.unfinished import begin_capture
from tests.postgres import database, postgres_server

TENANT = "bench"
PEERS = ("bookferry", "bookferry rows", "pandas", "pandas multi")
CHUNKS = {"pandas": 10_000, "pandas multi": 1_000}
"""Rows per chunk. `multi` is slower with more, and fails with more than 65,535 values."""


def main() -> None:
    """Measure and print, or run one of the peers."""
    parser = argparse.ArgumentParser(description="Measure how fast a snapshot is loaded into Postgres.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--pandas", type=int, default=20_000, help="publications for pandas")
    parser.add_argument("--data", type=Path, help="folder for the snapshot; one that is there is used")
    parser.add_argument(
        "--wal-level", choices=("replica", "minimal"), default="replica", help="of the server (default: replica)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        print(json.dumps(work(arguments.peer, arguments.address, DataFolder(arguments.data), arguments.pandas)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        data = DataFolder((arguments.data or Path(temporary)).absolute())
        if not data.snapshots():
            make_snapshot(data, arguments.records)
        figures = measure(data, arguments.pandas, arguments.wal_level)
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"{in_words()}\n\n{'':16}publications  publications/s      rows/s  peak MiB")
    for name, one in figures["peers"].items():
        speeds = f"{one['publications_per_second']:>16,}{one['rows_per_second']:>12,}{one['peak_mib']:>10,}"
        print(f"{name:<16}{one['publications']:>12,}{speeds}")
    print(
        f"\nbookferry × the better pandas: {figures['ratio_of_rows']:.1f} for the rows, {figures['ratio']:.1f} with all else"
    )


def measure(data: DataFolder, some: int, wal_level: str) -> dict[str, Any]:
    """Run every peer once, each on its own database."""
    peers: dict[str, Any] = {}
    with postgres_server(wal_level) as server:
        for peer in PEERS:
            with database(server) as address:
                peers[peer] = _watched(peer, address, data, some)
    speed = {name: one["publications_per_second"] for name, one in peers.items()}
    better = max(speed["pandas"], speed["pandas multi"])
    return {"peers": peers, "ratio": speed["bookferry"] / better, "ratio_of_rows": speed["bookferry rows"] / better}


def _watched(peer: str, address: str, data: DataFolder, some: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.postgres", "--peer", peer, "--address", address]
    command += ["--data", str(data.path), "--pandas", str(some)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, MemoryWatch(process.pid) as memory:
        out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{peer} failed")
    done = json.loads(out)
    return {
        **done,
        "publications_per_second": round(done["publications"] / done["seconds"]),
        "rows_per_second": round(done["rows"] / done["seconds"]),
        "peak_mib": round(memory.peak_bytes / 2**20),
    }


def work(peer: str, address: str, data: DataFolder, some: int) -> dict[str, Any]:
    """The work of one process: publications, rows, seconds."""
    (snapshot,) = data.snapshots()
    if peer == "bookferry":
        return by_bookferry(address, data, snapshot)
    if peer == "bookferry rows":
        return rows_by_bookferry(address, data, snapshot)
    return by_pandas(address, snapshot, some, CHUNKS[peer], "multi" if peer == "pandas multi" else None)


def by_bookferry(address: str, data: DataFolder, snapshot: Snapshot) -> dict[str, Any]:
    """The complete load of a backup."""
    staged = Database(address).load(data, snapshot)
    assert not staged.left_out
    return {"publications": staged.tables["publications"], "rows": staged.rows, "seconds": staged.seconds}


def rows_by_bookferry(address: str, data: DataFolder, snapshot: Snapshot) -> dict[str, Any]:
    """The rows alone, into tables without keys, as `to_sql` does it."""
    server = Server(address)

    def copied(table: Table) -> int:
        with server.copier() as cursor:
            cursor.execute(create_table("public", table))
            return copy_table(cursor, "public", table, data, snapshot).rows

    begun = time.perf_counter()
    with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
        counts = pool.map(copied, STAGED["publications"])
        rows = {table.name: count for table, count in zip(STAGED["publications"], counts, strict=True)}
    return {
        "publications": rows["publications"],
        "rows": sum(rows.values()),
        "seconds": round(time.perf_counter() - begun, 3),
    }


def by_pandas(address: str, snapshot: Snapshot, some: int, chunk: int, method: Any) -> dict[str, Any]:
    """`to_sql` of the tables of the first publications."""
    publications = ds.dataset(snapshot.path / snapshot.manifest.tables["publications"].path)
    last = publications.head(some, columns=["id"]).column("id")[-1]
    frames = {}
    for table in STAGED["publications"]:
        path = snapshot.path / snapshot.manifest.tables[table.name].path
        found = ds.dataset(path).to_table(filter=ds.field(table.key[0]) <= last)
        frames[table.name] = found.to_pandas()
    engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
    begun = time.perf_counter()
    for name, frame in frames.items():
        frame.to_sql(name, engine, index=False, chunksize=chunk, method=method)
    seconds = round(time.perf_counter() - begun, 3)
    engine.dispose()
    return {
        "publications": len(frames["publications"]),
        "rows": sum(map(len, frames.values())),
        "seconds": seconds,
    }


def make_snapshot(data: DataFolder, count: int) -> None:
    """Make a snapshot of the generated library, by the steps of a backup without its listing."""
    data.prepare()
    now = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
    capture = begin_capture(
        data, TENANT, "run", ["publications"], base_url="https://library.example.org", api="v2", now=now
    )
    _write_raw(capture, Publications(count), count)
    staging.stage(capture, "publications")
    files.skip_files(capture)
    data.publish(capture, now)


def _write_raw(capture: Capture, publications: Publications, count: int) -> None:
    schema = raw_table("publications").schema
    pages_at_once = 40
    with capture.raw_writer("publications") as writer:
        for start in range(0, count, BLOCK * pages_at_once):
            batch = RawRecords()
            for first in range(start, min(count, start + BLOCK * pages_at_once), BLOCK):
                page = b"[" + publications.json(first, first + BLOCK) + b"]"
                records = msgspec.json.decode(page, type=list[msgspec.Raw])
                ids = [msgspec.json.decode(one, type=_OnlyId).id for one in records]
                batch.add(records, ids, first // BLOCK + 1)
            writer.write(batch.batch(schema))
    capture.add_table("raw_publications", capture.raw_path("publications"), writer.rows)
    capture.facts.resources["publications"] = ResourceFacts(
        endpoint="publications/all",
        records=count,
        distinct_ids=count,
        without_id=0,
        pages=count // BLOCK,
        x_total=count,
        requests=0,
        seconds=0.0,
        complete=True,
        problems=[],
    )
    capture.save()


class _OnlyId(msgspec.Struct):
    id: int


if __name__ == "__main__":
    main()
