"""How long a command takes until it has answered.

The library has 50 publications and no files; one backup is there before the commands that read it. Each command runs several times, in
turns; the median counts. `python` is an interpreter that does nothing: no command can be faster.
"""

from __future__ import annotations

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


def measure(_folder: Path, runs: int = 5) -> Figures:
    """Command → medians of so many runs."""
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
