"""How long a command takes until it has answered.

    .venv/bin/python -m benchmarks.start
    .venv/bin/python -m benchmarks.start --runs 1

The library has 50 publications and no files; one backup is there before the commands that read it. Each command runs several times, in
turns; the median counts. `python` is an interpreter that does nothing: no command can be faster.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.measured import BOOKFERRY, TENANT, Cost, Figures, configured, markdown, run, server

COMMANDS = {
    "python": [sys.executable, "-c", ""],
    "bookferry --version": [BOOKFERRY, "--version"],
    "bookferry --help": [BOOKFERRY, "--help"],
    "bookferry snapshots list": [BOOKFERRY, "snapshots", "list"],
    "bookferry status": [BOOKFERRY, "status"],
    "bookferry query": [BOOKFERRY, "query", "SELECT count(*) FROM publications"],
    "bookferry backup": [BOOKFERRY, "backup", TENANT],
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how long commands take.")
    parser.add_argument("--runs", type=int, default=5, help="of each command (default: 5)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    figures = measure(arguments.runs)
    print(json.dumps(figures) if arguments.json else table(figures))


def measure(runs: int) -> Figures:
    """Command → medians."""
    costs: dict[str, list[Cost]] = {name: [] for name in COMMANDS}
    with server("--records", "50") as (base_url, _output), tempfile.TemporaryDirectory() as folder:
        options = {"cwd": folder, "env": configured(base_url, Path(folder)), "stderr": subprocess.DEVNULL}
        run(COMMANDS["bookferry backup"], **options)
        for _turn in range(runs):
            for name, command in COMMANDS.items():
                costs[name].append(run(command, expected=(0, 3), **options))  # 3: `status` names something to do
    return {
        name: Cost(
            *(median(values) for values in zip(*([c.seconds, c.cpu_seconds, c.peak_mib] for c in done), strict=True))
        ).figures()
        for name, done in costs.items()
    }


def table(figures: Figures) -> str:
    """The figures as Markdown."""
    return markdown(
        ["command", "seconds", "CPU seconds", "peak MiB"],
        [[f"`{name}`", *cost.values()] for name, cost in figures.items()],
    )


if __name__ == "__main__":
    main()
