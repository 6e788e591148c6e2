"""A backup against other tools that copy the same library: records a second, CPU time, memory.

Every tool reads the same library from the same server in the same run, each time in a process of its own and an empty folder, in turns, so
that other work on the machine affects all of them. The number of copied records is checked. dlt's tables, of which the time grows with the
records, are made of the smaller library only.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.measured import BOOKFERRY, TENANT, Cost, Figures, configured, markdown, run, server

SIZES = (100_000, 1_000_000)
RUNS = 3
"""Of each tool with the smaller library; one with the larger one."""

BACKUP, DLT, DLT_ARROW = "bookferry backup", "dlt", "dlt Arrow"
TOOLS = {BACKUP: SIZES[1], DLT: SIZES[0], DLT_ARROW: SIZES[1]}
"""Tool → records of the largest library that it copies."""


def measure(_folder: Path, sizes: Sequence[int] = SIZES, runs: int = RUNS) -> Figures:
    """Size → tool → medians."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for size in sizes:
        costs: dict[str, list[Cost]] = {tool: [] for tool, largest in TOOLS.items() if size <= largest}
        with server("--records", str(size)) as (base_url, _output):
            for _turn in range(runs if size <= SIZES[0] else 1):
                for tool, done in costs.items():
                    done.append(copy(tool, base_url, size))
        figures[str(size)] = {
            tool: {
                "seconds": round(median(cost.seconds for cost in done), 2),
                "cpu_microseconds": round(median(cost.cpu_seconds for cost in done) / size * 1e6, 1),
                "peak_mib": round(median(cost.peak_mib for cost in done)),
            }
            for tool, done in costs.items()
        }
    return figures


def copy(tool: str, base_url: str, size: int) -> Cost:
    """Copy the library with a tool, the start of its process included."""
    with tempfile.TemporaryDirectory(prefix="bookferry-bench-") as folder:
        if tool == BACKUP:
            environment = configured(base_url, Path(folder))
            cost = run([BOOKFERRY, "backup", TENANT, "--json"], cwd=folder, env=environment)
            copied = json.loads(cost.output)["counts"]["publications"]
        else:
            module = "dlt_tables" if tool == DLT else "dlt_arrow"
            cost = run([sys.executable, "-m", f"benchmarks.peers.{module}", base_url, folder])
            copied = json.loads(cost.output.splitlines()[-1])["records"]
    if copied != size:
        raise SystemExit(f"{tool} copied {copied:,} of {size:,} records: not comparable.")
    print(f"{size:>9,} records  {tool:<16} {cost.seconds:7.2f} s", file=sys.stderr, flush=True)
    return cost


def table(figures: Figures) -> str:
    """The figures as Markdown, with the ratios to each tool and of memory to that of the smaller library."""
    smallest = next(iter(figures.values()))
    rows = [
        [
            tool,
            int(size),
            round(int(size) / cost["seconds"]),
            round(smallest[DLT]["seconds"] / int(next(iter(figures))) / (cost["seconds"] / int(size)), 2),
            cost["cpu_microseconds"],
            cost["peak_mib"],
            round(cost["peak_mib"] / smallest[tool]["peak_mib"], 2),
        ]
        for size, tools in figures.items()
        for tool, cost in tools.items()
    ]
    columns = ["tool", "records", "records/s", "× dlt", "CPU µs a record", "peak MiB", "× the smaller library"]
    return markdown(columns, rows)
