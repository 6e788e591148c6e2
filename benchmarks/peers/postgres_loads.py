"""The ways of loading the tables of one snapshot into Postgres, each in the best configuration that its documentation names.

Every peer ends with the same primary keys, indexes and statistics as Bookferry's tables, made by the same
statements, one after another.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.dataset as ds
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

PEERS: dict[str, Peer] = {"bookferry": by_bookferry, "pandas": by_pandas}


def main(peer: str, address: str, folder: str, night: str, pandas: str) -> None:
    """Load the snapshot of a night by one of the peers, and print what it did."""
    data = DataFolder(Path(folder))
    print(json.dumps(PEERS[peer](address, data, data.snapshots()[int(night)], int(pandas))._asdict()))


if __name__ == "__main__":
    main(*sys.argv[1:])
