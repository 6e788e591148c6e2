"""The ways of loading the tables of one snapshot into Postgres, each in the best configuration that its documentation names.

Every peer ends with the same primary keys, indexes and statistics as Bookferry's tables, made by the same
statements, one after another.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import sqlalchemy as sa

from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import STAGED
from pipelines.store.postgres.definitions import rows_name
from pipelines.store.postgres.keys import Keyed, add_keys, index_names
from pipelines.store.postgres.loading import Database
from pipelines.store.postgres.server import Server
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

SCHEMA = "peer"
CHUNK = 10_000
"""Rows that pandas sends at once; `method="multi"` is slower."""

ROWS_A_FILE = 250_000
"""Rows in a file of dlt, so that large tables are loaded by several workers at once, as its documentation advises."""

TABLES = STAGED["publications"]


class Load(NamedTuple):
    """What one peer did; `seconds` without imports."""

    publications: int
    rows: int
    seconds: float


def by_bookferry(address: str, data: DataFolder, snapshot: Snapshot, _pandas: int) -> Load:
    """The complete load of a backup."""
    begun = time.perf_counter()
    staged = Database(address).load(data, snapshot)
    assert not staged.left_out
    return Load(staged.tables["publications"], staged.rows, round(time.perf_counter() - begun, 2))


def by_pandas(address: str, _data: DataFolder, snapshot: Snapshot, publications: int) -> Load:
    """`to_sql` of the tables of the first publications, from data frames in memory."""
    last = ds.dataset(_file(snapshot, TABLES[0])).head(publications, columns=["id"]).column("id")[-1]
    frames = {
        table.name: ds.dataset(_file(snapshot, table), schema=table.schema.remove_metadata())
        .to_table(filter=ds.field(table.key[0]) <= last)
        .to_pandas()
        for table in TABLES
    }
    engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(SCHEMA))
    begun = time.perf_counter()
    for name, frame in frames.items():
        frame.to_sql(name, engine, schema=SCHEMA, index=False, chunksize=CHUNK)
    engine.dispose()
    return _keyed(begun, address, {name: len(frame) for name, frame in frames.items()})


def by_dlt(address: str, _data: DataFolder, snapshot: Snapshot, _pandas: int) -> Load:
    """A load by dlt from Arrow batches, which it does not take apart, with Parquet files that several workers load by ADBC."""
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
        begun = time.perf_counter()
        pipeline = dlt.pipeline(
            "bench",
            pipelines_dir=work,
            destination=dlt.destinations.postgres(_complete_address(address), create_indexes=False),
            dataset_name=SCHEMA,
        )
        done = pipeline.run([resource_of(table) for table in TABLES], loader_file_format="parquet")
        done.raise_on_failed_jobs()
        counts = pipeline.last_trace.last_normalize_info.row_counts
        return _keyed(begun, address, {table.name: counts[table.name] for table in TABLES})


def _complete_address(address: str) -> str:
    """The address with a host and a password, which dlt requires. libpq prefers the host in the query."""
    url = sa.make_url(address)
    return url.set(host=url.host or "localhost", password=url.password or "none").render_as_string(hide_password=False)


def _keyed(begun: float, address: str, rows: dict[str, int]) -> Load:
    """Make Bookferry's keys and indexes for the tables of a peer, and check their rows."""
    with Server(address).session() as session:
        session.run(*(f"ALTER TABLE {SCHEMA}.{name} RENAME TO {rows_name(name)}" for name in rows))
        present = index_names(session, SCHEMA)
        keyed = [Keyed(SCHEMA, table) for table in TABLES]
        left_out = [sentence for table in keyed for sentence in add_keys(session, table, present[table.name])]
    seconds = round(time.perf_counter() - begun, 2)
    assert not left_out
    with Server(address).session() as session:
        for name, count in rows.items():
            assert session.value(f"SELECT count(*) FROM {SCHEMA}.{rows_name(name)}") == count
    return Load(rows["publications"], sum(rows.values()), seconds)


def _file(snapshot: Snapshot, table: Table) -> Path:
    return snapshot.path / snapshot.manifest.tables[table.name].path


Peer = Callable[[str, DataFolder, Snapshot, int], Load]
"""Address, data, snapshot, publications for pandas → the load."""

PEERS: dict[str, Peer] = {"bookferry": by_bookferry, "dlt": by_dlt, "pandas": by_pandas}


def main(peer: str, address: str, folder: str, night: str, pandas: str) -> None:
    """Load the snapshot of a night by one of the peers, and print what it did."""
    data = DataFolder(Path(folder))
    print(json.dumps(PEERS[peer](address, data, data.snapshots()[int(night)], int(pandas))._asdict()))


if __name__ == "__main__":
    main(*sys.argv[1:])
