"""The ways of loading the tables of one snapshot into Postgres, each in the best configuration that its documentation names.

Every peer ends with the same primary keys, indexes, foreign keys, comments and statistics as Bookferry's tables, made by the same
statements, one after another.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import sqlalchemy as sa

from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import STAGED
from pipelines.store.postgres.copying import copy_table
from pipelines.store.postgres.definitions import create_table
from pipelines.store.postgres.keys import add_foreign_keys, add_own_keys, validate
from pipelines.store.postgres.loading import PARALLEL_TABLES, Database
from pipelines.store.postgres.server import Server
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

SCHEMA = "peer"
CHUNKS = {"pandas": 10_000, "pandas multi": 1_000}
"""Rows per chunk. `multi` is slower with more, and fails with more than 65,535 values."""

MULTI = 20_000
"""Publications for `pandas multi`, which would take half an hour for a million."""

ROWS_A_FILE = 250_000
"""Rows in a file of dlt, so that large tables are loaded by several workers at once, as its documentation advises."""

TABLES = STAGED["publications"]


@dataclass
class Load:
    """What one peer did. `publications`, and `seconds` without imports; `parts`: step → its seconds."""

    publications: int
    rows: int
    seconds: float
    parts: dict[str, float] = field(default_factory=dict)


class _Watch:
    """Seconds since the beginning, by step."""

    def __init__(self) -> None:
        self._begun = self._last = time.perf_counter()
        self.parts: dict[str, float] = {}

    def end(self, step: str) -> None:
        """End a step."""
        now = time.perf_counter()
        self.parts[step], self._last = round(now - self._last, 3), now

    def load(self, rows: dict[str, int]) -> Load:
        """The finished load. `rows`: table → rows."""
        seconds = round(time.perf_counter() - self._begun, 3)
        return Load(rows["publications"], sum(rows.values()), seconds, self.parts)


def cpu_seconds() -> float:
    """CPU time of this process and its ended children."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def by_bookferry(address: str, data: DataFolder, snapshot: Snapshot) -> Load:
    """The complete load of a backup: rows, keys, indexes, statistics, exchange of the tables, and views."""
    staged = Database(address).load(data, snapshot)
    assert not staged.left_out
    return Load(staged.tables["publications"], staged.rows, staged.seconds)


def rows_by_bookferry(address: str, data: DataFolder, snapshot: Snapshot) -> Load:
    """The rows alone, into tables without keys."""
    server = Server(address)

    def copied(table: Table) -> int:
        with server.copier() as cursor:
            cursor.execute(create_table("public", table))
            return copy_table(cursor, "public", table, data, snapshot).rows

    watch = _Watch()
    with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
        counts = pool.map(copied, TABLES)
        rows = {table.name: count for table, count in zip(TABLES, counts, strict=True)}
    return watch.load(rows)


def by_pandas(address: str, snapshot: Snapshot, some: int, chunk: int, method: Any) -> Load:
    """`to_sql` of the tables of the first publications, from data frames in memory."""
    last = ds.dataset(_file(snapshot, TABLES[0])).head(some, columns=["id"]).column("id")[-1]
    frames = {
        table.name: _file_rows(snapshot, table).to_table(filter=ds.field(table.key[0]) <= last).to_pandas()
        for table in TABLES
    }
    engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(SCHEMA))
    watch = _Watch()
    for name, frame in frames.items():
        frame.to_sql(name, engine, schema=SCHEMA, index=False, chunksize=chunk, method=method)
    engine.dispose()
    return _keyed(watch, address, snapshot, {name: len(frame) for name, frame in frames.items()})


def by_adbc(address: str, snapshot: Snapshot) -> Load:
    """`adbc_ingest` of each file, as the driver's documentation shows it, three tables at a time."""
    server = Server(address)
    with server.session() as session:
        session.run(f"CREATE SCHEMA {SCHEMA}")

    def ingested(table: Table) -> int:
        reader = _file_rows(snapshot, table).scanner().to_reader()
        with server.copier() as cursor:
            return int(cursor.adbc_ingest(table.name, reader, mode="create", db_schema_name=SCHEMA))

    watch = _Watch()
    with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
        rows = dict(zip([table.name for table in TABLES], pool.map(ingested, TABLES), strict=True))
    return _keyed(watch, address, snapshot, rows)


def by_dlt(address: str, snapshot: Snapshot, file_format: str) -> Load:
    """A load by dlt from Arrow batches, which it does not take apart, with files that several workers load (parquet: by ADBC)."""
    os.environ |= {
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "RUNTIME__LOG_LEVEL": "ERROR",
        "DATA_WRITER__FILE_MAX_ITEMS": str(ROWS_A_FILE),
        "NORMALIZE__WORKERS": "2",
    }
    import dlt  # noqa: PLC0415  it takes a second

    def resource_of(table: Table) -> Any:
        def batches() -> Iterator[pa.Table]:
            with pq.ParquetFile(_file(snapshot, table)) as file:
                for batch in file.iter_batches(10_000, columns=table.schema.names):
                    yield pa.Table.from_batches([batch]).replace_schema_metadata()

        hints: Any = {column.name: {"data_type": "json"} for column in table.columns if column.json}
        return dlt.resource(batches, name=table.name, columns=hints, parallelized=True)

    with tempfile.TemporaryDirectory() as work:
        watch = _Watch()
        pipeline = dlt.pipeline(
            "bench",
            pipelines_dir=work,
            destination=dlt.destinations.postgres(_complete_address(address), create_indexes=False),
            dataset_name=SCHEMA,
        )
        done = pipeline.run([resource_of(table) for table in TABLES], loader_file_format=file_format)
        done.raise_on_failed_jobs()
        counts = pipeline.last_trace.last_normalize_info.row_counts
        return _keyed(watch, address, snapshot, {table.name: counts[table.name] for table in TABLES})


def _complete_address(address: str) -> str:
    """The address with a host and a password, which dlt requires. libpq prefers the host in the query."""
    url = sa.make_url(address)
    return url.set(host=url.host or "localhost", password=url.password or "none").render_as_string(hide_password=False)


def _keyed(watch: _Watch, address: str, snapshot: Snapshot, rows: dict[str, int]) -> Load:
    """Make Bookferry's keys and indexes for the tables of a peer."""
    watch.end("rows")
    with Server(address).session() as session:
        for name, count in rows.items():
            assert session.value(f"SELECT count(*) FROM {SCHEMA}.{name}") == count
    watch.end("count")
    with Server(address).session() as session:
        tables = [
            add_own_keys(session, SCHEMA, table, snapshot.manifest.tenant, snapshot.manifest.snapshot)
            for table in TABLES
        ]
        made, left_out = add_foreign_keys(session, SCHEMA, tables)
        left_out += [sentence for key in made for sentence in validate(session, key)]
    watch.end("keys")
    assert not left_out
    assert not any(table.left_out for table in tables)
    load = watch.load(rows)
    load.seconds = round(load.seconds - load.parts.pop("count"), 3)
    return load


def _file(snapshot: Snapshot, table: Table) -> Path:
    return snapshot.path / snapshot.manifest.tables[table.name].path


def _file_rows(snapshot: Snapshot, table: Table) -> Any:
    return ds.dataset(_file(snapshot, table), schema=table.schema.remove_metadata())


Peer = Callable[[str, DataFolder, Snapshot, int], Load]
"""Address, data, snapshot, publications for pandas → the load."""

PEERS: dict[str, Peer] = {
    "bookferry": lambda address, data, snapshot, _: by_bookferry(address, data, snapshot),
    "bookferry rows": lambda address, data, snapshot, _: rows_by_bookferry(address, data, snapshot),
    "dlt parquet": lambda address, _, snapshot, __: by_dlt(address, snapshot, "parquet"),
    "dlt csv": lambda address, _, snapshot, __: by_dlt(address, snapshot, "csv"),
    "ADBC": lambda address, _, snapshot, __: by_adbc(address, snapshot),
    "pandas": lambda address, _, snapshot, some: by_pandas(address, snapshot, some, CHUNKS["pandas"], None),
    "pandas multi": lambda address, _, snapshot, some: by_pandas(
        address, snapshot, min(some, MULTI), CHUNKS["pandas multi"], "multi"
    ),
}
