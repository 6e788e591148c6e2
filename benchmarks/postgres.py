"""How fast a snapshot is loaded into Postgres, compared with other tools, on one server in one run.

    .venv/bin/python -m benchmarks.postgres                     # 1,000,000 publications, all their tables: some minutes
    .venv/bin/python -m benchmarks.postgres --records 20000 --pandas 2000

`bookferry` is the whole load: rows, keys, indexes, statistics and the swap of the tables. dlt, ADBC and pandas load the same rows and then
make the same keys and indexes (`peers/postgres_loads.py`); `pandas multi`, the slower form, loads fewer publications. `bookferry rows` are
the rows alone. `nightly` is the load of the next snapshot, in which one record in a hundred is changed: it writes the changes alone.
`signed anew` is that of a third one, in which others are, and the service has signed the addresses of all files anew. `again` loads the
third snapshot a second time, which is always a whole load. Each is a process of its own; CPU is that of the process and of the
server, and memory is watched from outside.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from benchmarks.machine import MemoryWatch, cpu_seconds_of_server, in_words
from benchmarks.peers.postgres_loads import PEERS, cpu_seconds
from benchmarks.publications import BLOCK, Publications
from pipelines.backup import files, staging
from pipelines.records.raw import RawRecords
from pipelines.records.tables.registry import raw_table
from pipelines.store.snapshots.captures import Capture, ResourceFacts
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.snapshots.unfinished import begin_capture
from tests.postgres import database, postgres_server

TENANT = "bench"
CHANGED = 100
"""In each later snapshot, one record in so many has another title."""

LATER_NIGHTS = ("nightly", "signed anew")

_ADDRESS = re.compile(rb'(url":"https://[^"]*)')


def main() -> None:
    """Measure and print, or run one of the peers."""
    parser = argparse.ArgumentParser(description="Measure how fast a snapshot is loaded into Postgres.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--pandas", type=int, default=1_000_000, help="publications for pandas")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), help="which ones (default: all)")
    parser.add_argument("--data", type=Path, help="folder for the snapshots; those that are there are used")
    parser.add_argument(
        "--wal-level", choices=("replica", "minimal"), default="replica", help="of the server (default: replica)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--snapshot", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        print(json.dumps(work(arguments)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        data = DataFolder((arguments.data or Path(temporary)).absolute())
        if not data.snapshots():
            for night in range(1 + len(LATER_NIGHTS)):
                make_snapshot(data, arguments.records, night)
        figures = measure(data, arguments.peers, arguments.pandas, arguments.wal_level)
    print(json.dumps(figures) if arguments.json else f"{in_words()}\n\n{table(figures)}")


def measure(data: DataFolder, peers: list[str], some: int, wal_level: str) -> dict[str, Any]:
    """Run every peer once, each on its own database; after Bookferry's load, those of the next nights."""
    first, *later = sorted(data.snapshots(), key=lambda one: one.manifest.snapshot)
    loads: dict[str, dict[str, Any]] = {}
    with postgres_server(wal_level) as server:
        for peer in peers:
            with database(server) as address:
                loads[peer] = _watched(peer, address, data, first, some)
                if peer == "bookferry":
                    for name, night in zip(LATER_NIGHTS, later, strict=True):
                        _settle(address)
                        loads[name] = _watched(peer, address, data, night, some)
                    loads["again"] = _watched(peer, address, data, later[-1], some)
    return {"wal_level": wal_level, "loads": loads, "ratios": ratios(loads)}


def ratios(loads: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The seconds, and the CPU of client and server, that each other tool takes for a publication, as multiples of Bookferry's.

    Of a tool in two forms, the cheaper one counts. `nightly`, `signed anew`: the shares of a whole load that they take.
    """
    if "bookferry" not in loads:
        return {}
    costs = {"seconds": lambda one: one["seconds"], "cpu": lambda one: one["cpu_client"] + one["cpu_server"]}
    found: dict[str, dict[str, float]] = {}
    for name, cost in costs.items():
        each = {peer: cost(one) / one["publications"] for peer, one in loads.items()}
        tools = {
            tool: [own for peer, own in each.items() if peer.startswith(tool)] for tool in ("pandas", "dlt", "ADBC")
        }
        found[name] = {tool: round(min(own) / each["bookferry"], 2) for tool, own in tools.items() if own}
        found[name] |= {night: round(each[night] / each["again"], 2) for night in LATER_NIGHTS}
    return found


def table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""
    lines = [
        "| | publications | seconds | publications/s | rows/s | CPU s, client | CPU s, server | peak MiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, one in figures["loads"].items():
        speeds = f"{one['seconds']:.1f} | {one['publications_per_second']:,} | {one['rows_per_second']:,}"
        machine = f"{one['cpu_client']:.1f} | {one['cpu_server']:.1f} | {one['peak_mib']:,}"
        lines.append(f"| `{name}` | {one['publications']:,} | {speeds} | {machine} |")
    lines += ["", "Each tool in its faster form, and the next nights, as multiples of Bookferry's whole load:", ""]
    lines += [
        f"- {name}: " + ", ".join(f"{tool} {ratio:.2f}" for tool, ratio in compared.items())
        for name, compared in figures["ratios"].items()
    ]
    return "\n".join(lines)


def _watched(peer: str, address: str, data: DataFolder, snapshot: Snapshot, some: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.postgres", "--peer", peer, "--address", address]
    command += ["--data", str(data.path), "--pandas", str(some), "--snapshot", snapshot.manifest.snapshot]
    folder = _server_folder(address)
    os.sync()  # what others wrote must not be written during this load
    before = cpu_seconds_of_server(folder)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, MemoryWatch(process.pid) as memory:
        out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{peer} failed")
    done = json.loads(out.splitlines()[-1])
    return {
        **done,
        "publications_per_second": round(done["publications"] / done["seconds"]),
        "rows_per_second": round(done["rows"] / done["seconds"]),
        "cpu_server": round(cpu_seconds_of_server(folder) - before, 2),
        "peak_mib": round(memory.peak_bytes / 2**20),
    }


def _settle(address: str) -> None:
    """Let the server end what it does after a load, as it has the day before the next night."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _server_folder(address: str) -> Path:
    with psycopg.connect(address) as connection:
        return Path(connection.execute("SHOW data_directory").fetchall()[0][0])


def work(arguments: argparse.Namespace) -> dict[str, Any]:
    """The work of one process."""
    data = DataFolder(arguments.data)
    (snapshot,) = (one for one in data.snapshots() if one.manifest.snapshot == arguments.snapshot)
    before = cpu_seconds()
    load = PEERS[arguments.peer](arguments.address, data, snapshot, arguments.pandas)
    return {**asdict(load), "cpu_client": round(cpu_seconds() - before, 2)}


def make_snapshot(data: DataFolder, count: int, night: int = 0) -> None:
    """Make a snapshot of the generated library, by the steps of a backup without its listing.

    `night`: 0 for the first one; 1 for the next one, in which some records have another title; 2 for one in which others have, and in which
    all addresses are signed anew.
    """
    data.prepare()
    now = datetime(2026, 11, 20, 2, 0, tzinfo=UTC) + timedelta(days=night)
    capture = begin_capture(
        data, TENANT, "run", ["publications"], base_url="https://library.example.org", api="v2", now=now
    )
    _write_raw(capture, Publications(count), count, night)
    staging.stage(capture, "publications")
    files.skip_files(capture)
    data.publish(capture, now)


def _write_raw(capture: Capture, publications: Publications, count: int, night: int) -> None:
    schema = raw_table("publications").schema
    pages_at_once = 40
    with capture.raw_writer("publications") as writer:
        for start in range(0, count, BLOCK * pages_at_once):
            batch = RawRecords()
            for first in range(start, min(count, start + BLOCK * pages_at_once), BLOCK):
                page = b"[" + publications.json(first, first + BLOCK) + b"]"
                records = msgspec.json.decode(page, type=list[msgspec.Raw])
                if night:
                    records = [
                        _of_night(record, night, has_other_title=(first + place) % CHANGED == night - 1)
                        for place, record in enumerate(records)
                    ]
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


def _of_night(record: msgspec.Raw, night: int, *, has_other_title: bool) -> msgspec.Raw:
    changed = bytes(record)
    if has_other_title:
        changed = changed.replace(b'"title":"', b'"title":"Changed: ', 1)
    return msgspec.Raw(_ADDRESS.sub(rb"\1?X-Amz-Signature=5f6e", changed) if night > 1 else changed)


class _OnlyId(msgspec.Struct):
    id: int


if __name__ == "__main__":
    main()
