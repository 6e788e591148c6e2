"""What a migration's plan costs from two raw snapshots to the sealed plan, and its verification.

    .venv/bin/python -m benchmarks.plan                     # 1,000,000 against 1,000,000 publications: some minutes
    .venv/bin/python -m benchmarks.plan --records 20000 --json
    .venv/bin/python -m benchmarks.plan --empty             # the target is empty, so that the plan creates every record

The libraries are those of `matching.py`: nine tenths are in both. The target's reading is a raw table that is there already, because a
service limits a reading, not the machine. `verification`: the target as it is then has every record of the plan; its reading is not
counted. CPU is user and system time of this process and of the processes that it starts; memory is theirs together, sampled.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, cast

from benchmarks.machine import MemoryWatch, in_words
from benchmarks.matching import APART, make_raw
from pipelines.backup import files, staging
from pipelines.migration.flow import Migration
from pipelines.migration.model.actions import Action
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.target_reading import TargetListing
from pipelines.service.client import LibraryClient
from pipelines.service.clock import SystemClock
from pipelines.settings.loading import load_settings
from pipelines.store.parquet import open_table
from pipelines.store.snapshots.captures import ResourceFacts
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.snapshots.unfinished import begin_capture

NOW = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
CONFIG = """
data = "library-data"

[tenants.old]
base_url = "https://library.example.org"
api = "v2"
username_env = "BENCH_USER"
password_env = "BENCH_PASSWORD"

[tenants.new]
base_url = "https://new.example.org"
api = "v3"
client_id = "bench"
client_auth = "none"
"""
SAMPLED_EVERY = 0.5
"""Seconds between two samples of memory: the watch is in this process, and its time counts."""

READINGS = ("planned", "migrated")
"""The readings of the target: for the plan and for the verification."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure plans from raw snapshots, and their verification.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--empty", action="store_true", help="the target is empty")
    parser.add_argument("--only-plan", action="store_true", help="the plan alone")
    parser.add_argument("--folder", type=Path, help="folder for the snapshots; those that are there are used")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        figures = measure(folder, arguments.records, empty=arguments.empty, only_plan=arguments.only_plan)
    print(json.dumps(figures) if arguments.json else f"{in_words()}\n\n{table(figures)}")


def table(figures: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        f"{figures['records']:,} against {figures['target_records']:,} publications.",
        "",
        "| | seconds | CPU seconds | peak MiB |",
        "|---|--:|--:|--:|",
    ]
    for name, one in figures["steps"].items():
        lines.append(f"| {name} | {one['seconds']:.1f} | {one['cpu_seconds']:.1f} | {one['peak_mib']:,} |")
    return "\n".join(lines)


def measure(folder: Path, records: int, *, empty: bool = False, only_plan: bool = False) -> dict[str, Any]:
    """Make the snapshots where they are not there, plan, and verify."""
    if not (folder / "bookferry.toml").exists():
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            process.submit(make_libraries, folder, records, empty=empty).result()
    os.environ |= {"BENCH_USER": "bench", "BENCH_PASSWORD": "bench"}
    steps: dict[str, Any] = {}
    with watched(steps, "plan"):
        plan = plan_against(folder, "planned")
    if not only_plan:
        journal_creates(folder, plan)
        with watched(steps, "verification"):
            verified(folder, plan)
    return {
        "records": plan.facts.source.records["publications"],
        "target_records": plan.facts.target.records["publications"],
        "steps": steps,
        "actions": plan.facts.counts["publications"],
    }


@contextmanager
def watched(steps: dict[str, Any], name: str) -> Iterator[None]:
    """Measure a block."""
    begun, cpu = time.perf_counter(), _cpu_seconds()
    with MemoryWatch(os.getpid(), SAMPLED_EVERY) as memory:
        yield
    steps[name] = {
        "seconds": round(time.perf_counter() - begun, 2),
        "cpu_seconds": round(_cpu_seconds() - cpu, 2),
        "peak_mib": memory.peak_bytes >> 20,
    }


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def plan_against(folder: Path, reading: str) -> Plan:
    """Plan a move of the snapshot, with a reading of the target that is there."""
    with prepared(folder, reading) as migration:
        return migration.plan(migration.find_source("old"), "new")


def journal_creates(folder: Path, plan: Plan) -> None:
    """Enter the creation of every record that the plan creates into the journal, in one transaction."""
    ends = plan.facts.source.base_url, plan.facts.target.base_url
    rows = (
        (*ends, plan.name, "publications", row.source_id, row.source_id + APART) for row in plan.rows(Action.CREATE)
    )
    with prepared(folder, "migrated") as migration:
        store = migration.data.state.open(SystemClock(), what="The journal of writes", durable=False)
        with store.transaction() as db:
            db.executemany(
                "INSERT INTO migration_writes (source, target, plan, resource, source_id, target_id, kind, part, begun_at, state) "
                f"VALUES (?, ?, ?, ?, ?, ?, '{WriteKind.CREATE}', '', '2026-11-20T03:00:00.000+00:00', '{WriteState.DONE}')",
                rows,
            )
        store.close()


def verified(folder: Path, plan: Plan) -> None:
    """Verify a plan."""
    with prepared(folder, "migrated") as migration:
        migration.verify(plan)


@contextmanager
def prepared(folder: Path, reading: str) -> Iterator[Migration]:
    """The steps of a migration, whose target was read before."""
    with Migration(load_settings(folder / "bookferry.toml")) as migration:
        migration.session.reader = PreparedReading(folder / f"target-{reading}.parquet")  # type: ignore[assignment]
        migration.session.client = lambda _tenant: cast("Any", _NoClient())  # type: ignore[method-assign]
        yield migration


class _NoClient:
    """Stands for the client of a library to which no request is sent."""

    requests = 0
    clock = SystemClock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class PreparedReading:
    """A target that was read before; it has publications only."""

    def __init__(self, raw: Path) -> None:
        self._raw = raw

    def read(self, _target: str, _client: LibraryClient, folder: Path, *_: str) -> Path:
        """A second name of its raw table."""
        path = folder / "target-publications.parquet"
        path.hardlink_to(self._raw)
        return path

    def read_other_resources(self, *_: object) -> dict[str, TargetListing]:
        """Nothing."""
        return {}


def make_libraries(folder: Path, records: int, *, empty: bool) -> None:
    """Make the snapshot of the source, and both readings of the target."""
    folder.mkdir(parents=True, exist_ok=True)
    data = DataFolder(folder / "library-data")
    data.prepare()
    address = "https://library.example.org"
    capture = begin_capture(data, "old", "run", ["publications"], base_url=address, api="v2", now=NOW)
    make_raw(capture.raw_path("publications"), records, first=0, edited=False)
    with open_table(capture.raw_path("publications"), None) as file:
        rows = file.metadata.num_rows
    capture.add_table("raw_publications", capture.raw_path("publications"), rows)
    capture.facts.resources["publications"] = ResourceFacts(
        endpoint="publications/all",
        records=rows,
        distinct_ids=rows,
        without_id=0,
        pages=rows // 50,
        x_total=rows,
        requests=0,
        seconds=0.0,
        complete=True,
        problems=[],
    )
    capture.save()
    staging.stage(capture, "publications")
    files.skip_files(capture)
    data.publish(capture, NOW + timedelta(minutes=1))
    target = 0 if empty else records
    for reading, first in zip(READINGS, (records // 10, 0), strict=True):
        make_raw(folder / f"target-{reading}.parquet", target, first=first, edited=True)
    (folder / "bookferry.toml").write_text(CONFIG)


if __name__ == "__main__":
    main()
