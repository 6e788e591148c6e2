"""How long the report of a large library takes, and how much memory: all its files, with what changed since the night before.

    .venv/bin/python -m benchmarks.report                       # 1,000,000 publications with 1.2 million issues: some minutes
    .venv/bin/python -m benchmarks.report --records 20000 --json

Half of the publications are the real ones of the sandbox, again and again, with all their mistakes; the others are generated. Two
snapshots are made, a night apart: in the second, one record of a hundred was edited. `first` is the report of the first one, which has
nothing to compare; `nightly` is that of the second. Each is made in a process of its own, whose memory is watched from outside, with that
of the processes it starts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.resources import files as resource_files
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.machine import MemoryWatch, in_words
from benchmarks.publications import BLOCK, Publications
from pipelines.backup import files, staging
from pipelines.records.raw import RawRecords
from pipelines.records.tables.registry import raw_table
from pipelines.report.build import make_report
from pipelines.store.snapshots.captures import Capture, ResourceFacts
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.snapshots.unfinished import begin_capture

TENANT = "bench"

GENERATED = 2
"""Of so many publications, one is a generated one."""

EDITED = 100
"""Of so many publications, one was edited in the second night."""

FIRST_NIGHT = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
NIGHTS = ("first", "nightly")

RECORDS_AT_ONCE = 2_000


def main() -> None:
    """Measure and print, or make one of the reports."""
    parser = argparse.ArgumentParser(description="Measure how long the report of a library takes.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, help="folder for the snapshots; those that are there are used")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    parser.add_argument("--night", choices=NIGHTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.night:
        print(json.dumps(report_of(DataFolder(arguments.data), arguments.night)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        data = DataFolder((arguments.data or Path(temporary)).absolute())
        if not data.snapshots():
            make_snapshots(data, arguments.records)
        figures = {night: _watched(data, night) for night in NIGHTS}
    print(json.dumps(figures) if arguments.json else f"{in_words()}\n\n{table(figures)}")


def table(figures: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        "| report | publications | lines of issues | seconds | CPU seconds | peak MiB |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for night, one in figures.items():
        counts = f"{one['publications']:,} | {one['lines']:,}"
        lines.append(f"| {night} | {counts} | {one['seconds']:.1f} | {one['cpu_seconds']:.1f} | {one['peak_mib']:,} |")
    return "\n".join(lines)


def _watched(data: DataFolder, night: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.report", "--night", night, "--data", str(data.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, MemoryWatch(process.pid) as memory:
        out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"The report {night} failed")
    return {**json.loads(out), "peak_mib": round(memory.peak_bytes / 2**20)}


def report_of(data: DataFolder, night: str) -> dict[str, Any]:
    """Make one report: publications, lines of the table of issues, issues to look at, seconds, CPU seconds with those of its processes."""
    snapshot = data.snapshots()[NIGHTS.index(night)]
    begun = time.perf_counter()
    report = make_report(data, snapshot, now=FIRST_NIGHT)
    seconds = time.perf_counter() - begun
    return {
        "publications": report.figures.publications,
        "lines": report.to_do + report.repaired,
        "to_do": report.to_do,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(sum(os.times()[:4]), 2),
    }


def make_snapshots(data: DataFolder, count: int) -> None:
    """Make the snapshots of both nights, by the steps of a backup without its listing."""
    for night in range(len(NIGHTS)):
        data.prepare()
        now = FIRST_NIGHT + timedelta(days=night)
        library = {"base_url": "https://library.example.org", "api": "v2"}
        capture = begin_capture(data, TENANT, f"run {night}", ["publications"], **library, now=now)
        _write_raw(capture, count, edited=night > 0)
        staging.stage(capture, "publications")
        files.skip_files(capture)
        data.publish(capture, now)


def _write_raw(capture: Capture, count: int, *, edited: bool) -> None:
    records, schema = _records(count, edited=edited), raw_table("publications").schema
    with capture.raw_writer("publications") as writer:
        for first in range(0, count, RECORDS_AT_ONCE):
            ids = range(first + 1, min(first + RECORDS_AT_ONCE, count) + 1)
            batch = RawRecords()
            batch.add([next(records) for _id in ids], ids, first // BLOCK + 1)
            writer.write(batch.batch(schema))
    capture.add_table("raw_publications", capture.raw_path("publications"), writer.rows)
    capture.facts.resources["publications"] = ResourceFacts(
        endpoint="publications/all",
        records=count,
        distinct_ids=count,
        without_id=0,
        pages=-(-count // BLOCK),
        x_total=count,
        requests=0,
        seconds=0.0,
        complete=True,
        problems=[],
    )
    capture.save()


def _records(count: int, *, edited: bool) -> Iterator[msgspec.Raw]:
    """Yields the JSON of the publications, numbered from 1 on."""
    lines = gzip.decompress(resource_files("sandbox.library").joinpath("publications.jsonl.gz").read_bytes())
    real, publications = cycle(lines.splitlines()), Publications(count)
    generated = (
        record
        for first in range(0, count, BLOCK)
        for record in msgspec.json.decode(
            b"[" + publications.json(first, first + BLOCK) + b"]", type=list[dict[str, Any]]
        )
    )
    for number, one in enumerate(generated, start=1):
        record = one if number % GENERATED == 0 else msgspec.json.decode(next(real))
        record["id"] = number
        if edited and number % EDITED == 0:
            record["abstract"] = "Edited by somebody"
        yield msgspec.Raw(msgspec.json.encode(record))


if __name__ == "__main__":
    main()
