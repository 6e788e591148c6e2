"""How long the report of a large library takes, and how much memory: page and workbook, with what changed since the night before.

.venv/bin/python -m benchmarks.report                       # 1,000,000 publications, about a million issues: some minutes
.venv/bin/python -m benchmarks.report --records 20000

The libraries are those of `libraries.py`. `first` has nothing to compare; `nightly` says what changed since. Each is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.libraries import FIRST_NIGHT, NIGHTS, make_nights
from benchmarks.measured import Figures, markdown, run
from pipelines.report.build import make_report
from pipelines.store.snapshots.snapshots import DataFolder

REPORTED = NIGHTS[:2]


def main() -> None:
    """Measure and print, or make one of the reports."""
    parser = argparse.ArgumentParser(description="Measure how long the report of a library takes.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, help="folder for the snapshots; those that are there are used")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    parser.add_argument("--night", choices=REPORTED, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.night:
        print(json.dumps(report_of(DataFolder(arguments.data), arguments.night)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        figures = measure((arguments.data or Path(temporary)).absolute(), arguments.records)
    print(json.dumps(figures) if arguments.json else table(figures))


def measure(folder: Path, records: int) -> Figures:
    """Night → its report's figures."""
    if not DataFolder(folder).snapshots():
        make_nights(DataFolder(folder), records)
    figures = {}
    for night in REPORTED:
        cost = run([sys.executable, "-m", "benchmarks.report", "--night", night, "--data", str(folder)])
        figures[night] = cost.figures() | json.loads(cost.output)
    return figures


def report_of(data: DataFolder, night: str) -> dict[str, Any]:
    """Make one report; returns its publications, lines of issues, and seconds without imports."""
    snapshot = data.snapshots()[REPORTED.index(night)]
    begun = time.perf_counter()
    report = make_report(data, snapshot, now=FIRST_NIGHT)
    seconds = round(time.perf_counter() - begun, 2)
    return {"publications": report.figures.publications, "lines": report.to_do + report.repaired, "seconds": seconds}


def table(figures: Figures) -> str:
    """The figures as Markdown."""
    keys = ("publications", "lines", "seconds", "cpu_seconds", "peak_mib")
    columns = ["report", "publications", "lines of issues", "seconds", "CPU seconds", "peak MiB"]
    return markdown(columns, [[night, *(cost[key] for key in keys)] for night, cost in figures.items()])


if __name__ == "__main__":
    main()
