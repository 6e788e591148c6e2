"""How many records a second have their identifiers typed, checked and repaired, with verdict, rule and provenance, on one core.

    .venv/bin/python -m benchmarks.identifiers            # the real records of the sandbox's library, five runs
    .venv/bin/python -m benchmarks.identifiers --json

Measured in CPU time, so that neighbours on the machine count little. Nothing is cached: a record costs the same the hundredth time. The
last line is what python-stdnum alone takes for the ISBNs and ISSNs of the same records, without repairs, splitting and provenance.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from stdnum import isbn, issn

from benchmarks.machine import in_words
from pipelines.records.identifiers.kinds import STANDARD
from pipelines.records.identifiers.typed_identifiers import identify

Record = dict[str, Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the identifiers of real records.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=10, help="passes through the library per run")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    figures = measure(library(), arguments.runs, arguments.rounds)
    print(json.dumps(figures) if arguments.json else f"{in_words()}\n\n{table(figures)}")


def table(figures: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        f"{figures['records']:,} real records with {figures['values']:,} values.",
        "",
        "| | records/s | CPU µs a record |",
        "|---|--:|--:|",
    ]
    for name, speed in figures["records_per_second"].items():
        lines.append(f"| {name} | {speed:,} | {1e6 / speed:.2f} |")
    return "\n".join(lines)


def library() -> list[Record]:
    """The real records of the sandbox, in the form of version 2."""
    lines = gzip.decompress(files("sandbox.library").joinpath("publications.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def measure(records: list[Record], runs: int, rounds: int) -> dict[str, Any]:
    """Records a second, median of the runs: all fields, each field alone, and python-stdnum."""
    alone = {
        kind.name: [{kind.name: record[kind.name]} for record in records if record[kind.name]] for kind in STANDARD
    }
    speeds = {"all identifiers": _speed(identify, records, runs, rounds)}
    speeds |= {f"only filled {name}": _speed(identify, some, runs, rounds) for name, some in alone.items()}
    speeds["python-stdnum, ISBN and ISSN"] = _speed(_by_stdnum, records, runs, rounds)
    return {
        "records": len(records),
        "values": sum(len(identify(record)) for record in records),
        "records_per_second": speeds,
    }


def _speed(work: Callable[[Record], object], records: list[Record], runs: int, rounds: int) -> int:
    seconds = [_seconds(work, records, rounds) for _run in range(runs)]
    return round(len(records) * rounds / statistics.median(seconds))


def _seconds(work: Callable[[Record], object], records: list[Record], rounds: int) -> float:
    begun = time.process_time()
    for _round in range(rounds):
        for record in records:
            work(record)
    return time.process_time() - begun


def _by_stdnum(record: Record) -> None:
    if record["isbn"]:
        isbn.is_valid(record["isbn"])
    if record["issn"]:
        issn.is_valid(record["issn"])


if __name__ == "__main__":
    main()
