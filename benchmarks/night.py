"""What a night takes besides the service's time: from the start to the first request, and from the last request to the end.

    python -m benchmarks.night
    python -m benchmarks.night --records 1000 --json    # a small library: does it work?

`bookferry backup` runs twice for each library, the second time with a snapshot and a history of runs to compare with. The service answers
at once: what a backup does beside the reading has less time than in production. The library of 5,445 publications has the real records of
the sandbox, the others have generated ones.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.machine import family_cpu_seconds, in_words
from benchmarks.peers.configuration import NO_LIMIT, TENANT, write_configuration

ROOT = Path(__file__).parents[1]
COMMAND = [str(Path(sys.executable).with_name("bookferry")), "backup", TENANT, "--json"]

SMALL, REAL, LARGE = 50, 5_445, 100_000
NIGHTS = ("first", "second")

EVERY = 0.02
"""Seconds between two looks at the CPU time of the backup."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.night", description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, nargs="+", default=[SMALL, REAL, LARGE], help="default: 50 5445 100000")
    parser.add_argument("--requests-per-minute", type=int, default=NO_LIMIT, help="the service's limit; default: none")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    figures = [one for records in arguments.records for one in nights(records, arguments.requests_per_minute)]
    print(json.dumps(figures) if arguments.json else f"{in_words()}\n\n{table(figures)}")


def nights(records: int, requests_per_minute: int = NO_LIMIT) -> list[dict[str, Any]]:
    """Two nights of one library, in a data folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            {"publications": records, "limit": requests_per_minute, "night": night}
            | one_night(records, Path(folder), requests_per_minute)
            for night in NIGHTS
        ]


def one_night(records: int, folder: Path, requests_per_minute: int) -> dict[str, float]:
    """Seconds and CPU seconds of the three parts of a backup."""
    which = ["--real"] if records == REAL else ["--records", str(records)]
    serve = [sys.executable, "-m", "benchmarks.server", "--times", *which]
    with subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        config = write_configuration(server.stdout.readline().split()[1], folder, requests_per_minute)
        started = time.monotonic()
        process = subprocess.Popen(
            COMMAND, cwd=folder, env=os.environ | {"BOOKFERRY_CONFIG": str(config)}, stdout=subprocess.DEVNULL
        )
        seen = [(started, 0.0)]
        ended = threading.Event()
        looking = threading.Thread(target=_look, args=(process.pid, seen, ended))
        looking.start()
        _, status, usage = os.wait4(process.pid, 0)
        end = time.monotonic()
        ended.set()
        looking.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        server.terminate()
        times = json.loads(server.stdout.readline())
    if process.returncode:
        raise SystemExit(f"The backup ended with {process.returncode}.")
    first, last = times[0], times[-1]  # one and the same page of a small library
    whole, (to_first, to_last) = usage.ru_utime + usage.ru_stime, (_before(seen, moment) for moment in (first, last))
    parts = {
        "start": (first - started, to_first),
        "reading": (last - first, to_last - to_first),
        "end": (end - last, whole - to_last),
    }
    return {
        key: round(value, 2)
        for name, (seconds, cpu) in parts.items()
        for key, value in ((f"{name}_seconds", seconds), (f"{name}_cpu_seconds", cpu))
    }


def _look(process: int, seen: list[tuple[float, float]], ended: threading.Event) -> None:
    while not ended.wait(EVERY):
        seen.append((time.monotonic(), family_cpu_seconds(process)))


def _before(seen: list[tuple[float, float]], moment: float) -> float:
    """The most CPU seconds that were seen until a moment: those of a process that ends are missing for an instant."""
    return max(cpu for at, cpu in seen if at <= moment)


def table(figures: list[Mapping[str, Any]]) -> str:
    """The figures as Markdown."""
    lines = [
        "| publications | night | start → first request | CPU s | last request → end | CPU s |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    for one in figures:
        start = f"{one['start_seconds']:.1f} s | {one['start_cpu_seconds']:.1f}"
        end = f"{one['end_seconds']:.1f} s | {one['end_cpu_seconds']:.1f}"
        lines.append(f"| {one['publications']:,} | {one['night']} | {start} | {end} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
