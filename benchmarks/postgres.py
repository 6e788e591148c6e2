"""How fast a snapshot is loaded into Postgres, compared with other tools, on one server in one run.

    .venv/bin/python -m benchmarks.postgres                     # 1,000,000 publications, all their tables: some minutes
    .venv/bin/python -m benchmarks.postgres --records 20000 --pandas 2000

`bookferry` is the first load: rows, keys, indexes, statistics. dlt and pandas load the same rows and then make the same keys and indexes
(`peers/postgres_loads.py`). `nightly` and `signed anew` are the loads of the later nights of `libraries.py` into the same tables. Each load
is a process of its own; CPU is that of the process and of the server.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import psycopg

from benchmarks.libraries import NIGHTS, make_nights
from benchmarks.measured import Figures, cpu_seconds_of_server, markdown, run
from benchmarks.peers.postgres_loads import PEERS, Load
from pipelines.store.snapshots.snapshots import DataFolder
from tests.postgres import database, postgres_server

BOOKFERRY = "bookferry"
PANDAS = 200_000
"""Publications for pandas, whose time grows with the rows: a million would take three minutes and five gigabytes."""


def main() -> None:
    """Measure and print, or run one of the peers."""
    parser = argparse.ArgumentParser(description="Measure how fast a snapshot is loaded into Postgres.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--pandas", type=int, default=PANDAS, help=f"publications for pandas (default: {PANDAS})")
    parser.add_argument("--data", type=Path, help="folder for the snapshots; those that are there are used")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--night", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        snapshots = DataFolder(arguments.data).snapshots()
        load = PEERS[arguments.peer](
            arguments.address, DataFolder(arguments.data), snapshots[arguments.night], arguments.pandas
        )
        print(json.dumps(load._asdict()))
        return
    with tempfile.TemporaryDirectory() as temporary:
        figures = measure((arguments.data or Path(temporary)).absolute(), arguments.records, arguments.pandas)
    print(json.dumps(figures) if arguments.json else table(figures))


def measure(folder: Path, records: int, pandas: int) -> Figures:
    """Run every peer once, each on its own database; after Bookferry's load, those of the next nights."""
    if not DataFolder(folder).snapshots():
        make_nights(DataFolder(folder), records)
    loads = {}
    with postgres_server() as server:
        for peer in PEERS:
            with database(server) as address:
                for night, name in enumerate(NIGHTS if peer == BOOKFERRY else NIGHTS[:1]):
                    loads[name if night else peer] = _load(peer, address, folder, night, pandas)
    return loads


def _load(peer: str, address: str, folder: Path, night: int, pandas: int) -> Figures:
    with psycopg.connect(
        address, autocommit=True
    ) as connection:  # what the server has to do besides, it has done by the next night
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
        ((data_directory,),) = connection.execute("SHOW data_directory").fetchall()
    os.sync()
    server = int((Path(data_directory) / "postmaster.pid").read_text().splitlines()[0])
    before = cpu_seconds_of_server(server)
    arguments = ["--data", str(folder), "--night", str(night), "--address", address, "--pandas", str(pandas)]
    cost = run([sys.executable, "-m", "benchmarks.postgres", "--peer", peer, *arguments])
    cpu_seconds = cost.cpu_seconds + cpu_seconds_of_server(server) - before
    load = Load(**json.loads(cost.output.splitlines()[-1]))
    return load._asdict() | {"cpu_seconds": round(cpu_seconds, 1), "peak_mib": round(cost.peak_mib)}


def table(figures: Figures) -> str:
    """The figures in Markdown, with the seconds a publication as multiples of those of Bookferry's first load."""
    whole = figures[BOOKFERRY]["seconds"] / figures[BOOKFERRY]["publications"]
    rows = [
        [f"`{name}`", *load.values(), round(load["seconds"] / load["publications"] / whole, 2)]
        for name, load in figures.items()
    ]
    return markdown(["load", "publications", "rows", "seconds", "CPU seconds", "peak MiB", "× bookferry"], rows)


if __name__ == "__main__":
    main()
