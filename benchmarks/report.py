"""How long the report of a large library takes, and how much memory: page and workbook, with what changed since the night before.

The libraries are those of `libraries.py`. `first` has nothing to compare; `nightly` says what changed since. Each is a process of its own.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.libraries import FIRST_NIGHT, NIGHTS, make_nights
from benchmarks.measured import Figures, markdown, run
from pipelines.report.build import make_report
from pipelines.store.snapshots.snapshots import DataFolder


def measure(folder: Path, records: int = 1_000_000) -> Figures:
    """Night → its report's figures. A million publications have about a million issues."""
    make_nights(DataFolder(folder), records)
    figures = {}
    for night in NIGHTS:
        cost = run([sys.executable, "-m", "benchmarks.report", night, str(folder)])
        figures[night] = cost.figures() | json.loads(cost.output)
    return figures


def report_of(night: str, data: DataFolder) -> dict[str, Any]:
    """Make one report; returns its publications, lines of issues, and seconds without imports."""
    snapshot = data.snapshots()[NIGHTS.index(night)]
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
    print(json.dumps(report_of(sys.argv[1], DataFolder(Path(sys.argv[2])))))
