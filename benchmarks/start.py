"""How long a command takes until it has answered: wall-clock time, CPU time and memory of the whole process and of those that it starts.

    python -m benchmarks.start
    python -m benchmarks.start --runs 1 --json

The library has 50 publications and no files; one backup is there before the commands that read it. Each command runs several times, in
turns; the median counts. `python` is an interpreter that does nothing: no command can be faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import MemoryWatch, in_words
from benchmarks.peers.configuration import TENANT, write_configuration

ROOT = Path(__file__).parents[1]
BOOKFERRY = str(Path(sys.executable).with_name("bookferry"))
RECORDS = 50
COMPLETION = {"_BOOKFERRY_COMPLETE": "complete_bash", "COMP_WORDS": "bookferry backup ", "COMP_CWORD": "2"}
COMMANDS: dict[str, list[str]] = {
    "python": [sys.executable, "-c", ""],
    "bookferry --version": [BOOKFERRY, "--version"],
    "completion": [BOOKFERRY],
    "bookferry --help": [BOOKFERRY, "--help"],
    "bookferry backup --help": [BOOKFERRY, "backup", "--help"],
    "bookferry tables": [BOOKFERRY, "tables"],
    "bookferry snapshots list": [BOOKFERRY, "snapshots", "list"],
    "bookferry status": [BOOKFERRY, "status"],
    "bookferry query": [BOOKFERRY, "query", "SELECT count(*) FROM publications"],
    "bookferry backup": [BOOKFERRY, "backup", TENANT],
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="of each command (default: 5)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    figures = measure(arguments.runs)
    print(json.dumps(figures) if arguments.json else f"{in_words()}\n\n{table(figures)}")


def measure(runs: int) -> dict[str, Any]:
    """Run every command so many times."""
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in COMMANDS}
    serve = [sys.executable, "-m", "benchmarks.server", "--records", str(RECORDS)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        try:
            config = write_configuration(server.stdout.readline().split()[1], Path(folder))
            environment = os.environ | {"BOOKFERRY_CONFIG": str(config)}
            timed(COMMANDS["bookferry backup"], folder, environment)
            for _turn in range(runs):
                for name, command in COMMANDS.items():
                    extra = COMPLETION if name == "completion" else {}
                    taken[name].append(timed(command, folder, environment | extra))
        finally:
            server.terminate()
    return {
        name: {figure: median(run[figure] for run in done) for figure in done[0]} | {"runs": len(done)}
        for name, done in taken.items()
    }


def timed(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> dict[str, float]:
    """Seconds, CPU seconds and peak memory in MiB of one run."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with MemoryWatch(process.pid) as memory:
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):  # 3: `status` found something to do
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}.")
    own = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return {
        "seconds": round(seconds, 3),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
        "peak_mib": round(max(own, memory.peak_bytes / 2**20), 1),
    }


def table(figures: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    lines = ["| command | seconds | CPU seconds | peak MiB |", "|---|--:|--:|--:|"]
    for name, one in figures.items():
        lines.append(f"| `{name}` | {one['seconds']:.2f} | {one['cpu_seconds']:.2f} | {one['peak_mib']:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
