"""How fast a snapshot is loaded into Postgres, compared with pandas, on one server in one run.

`bookferry` is the first load: rows, keys, indexes, statistics. pandas loads the same rows and then makes the same keys and indexes
(`peers/postgres_loads.py`). `nightly` is the load of the next night of `libraries.py` into the same tables. Each load is a process of its
own, and memory is that of the process alone.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import psycopg

from benchmarks.libraries import NIGHTS, make_nights
from benchmarks.measured import Figures, markdown, run
from benchmarks.peers.postgres_loads import PEERS
from pipelines.store.snapshots.snapshots import DataFolder
from tests.postgres import database, postgres_server

BOOKFERRY = "bookferry"
PANDAS = 200_000
"""Publications for pandas, whose time grows with the rows: a million would take three minutes and five gigabytes."""


def measure(folder: Path, records: int = 1_000_000, pandas: int = PANDAS) -> Figures:
    """Run every peer once, each on its own database; after Bookferry's load, that of the next night."""
    make_nights(DataFolder(folder), records)
    loads = {}
    with postgres_server() as server:
        for peer in PEERS:
            with database(server) as address:
                for night, name in enumerate(NIGHTS if peer == BOOKFERRY else NIGHTS[:1]):
                    loads[name if night else peer] = _load(peer, address, folder, night, pandas)
    return loads


def _load(peer: str, address: str, folder: Path, night: int, pandas: int) -> Figures:
    with psycopg.connect(address, autocommit=True) as connection:  # as a server has done by the next night
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
    os.sync()
    command = [sys.executable, "-m", "benchmarks.peers.postgres_loads", peer, address, str(folder)]
    cost = run([*command, str(night), str(pandas)])
    return json.loads(cost.output.splitlines()[-1]) | {"peak_mib": round(cost.peak_mib)}


def table(figures: Figures) -> str:
    """The figures in Markdown, with the seconds a publication as multiples of those of Bookferry's first load."""
    whole = figures[BOOKFERRY]["seconds"] / figures[BOOKFERRY]["publications"]
    rows = [
        [f"`{name}`", *load.values(), round(load["seconds"] / load["publications"] / whole, 2)]
        for name, load in figures.items()
    ]
    return markdown(["load", "publications", "rows", "seconds", "peak MiB", "× bookferry"], rows)
