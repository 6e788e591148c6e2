"""Measures a backup of 100,000, 250,000 and 1,000,000 publications against other tools: `python -m benchmarks.backup`.

Every tool does the same job from the same server in the same run, each time in a new process, in turns (A B A B), so that other work on the
machine affects all of them. The output has medians and the ratios between them. The ratios hold on other machines, the seconds do not.

This process stays small on purpose: the kernel counts a parent's memory into the peak of the child that it starts.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import MemoryWatch, busy_seconds, cpu_seconds, in_words, wait_for_quiet

ROOT = Path(__file__).parents[1]
REFERENCE = "dlt"
SIZES = [100_000, 250_000, 1_000_000]

TRIES = 5
"""Attempts at most to get a run with the allowed noise."""

ENOUGH = 40.0
"""Seconds of a tool's runs after which it needs no other: the longer a run, the less it differs from the next one."""

PATIENCE = 60.0
"""Seconds to wait at most for a quiet moment to start in."""


@dataclass(frozen=True)
class Peer:
    """One tool: its name, the module that runs it, and its description."""

    name: str
    module: str
    what: str
    needs: str = "json"
    """The peer is left out where this module is not installed."""
    largest: int = 1_000_000
    """Records of the largest library that it is given; more would take memory or time that others need."""
    python: Path = Path(sys.executable)
    """Its interpreter: a tool with versions of its own has an environment of its own."""


@dataclass(frozen=True)
class Run:
    """The measurements of one process."""

    peer: str
    records: int
    seconds: float
    """From the start of the work until the copy can be used, as the process itself measured it."""
    process_seconds: float
    """The whole process, start-up and imports included."""
    cpu_seconds: float
    """User and kernel time of all its threads and children."""
    peak_bytes: int
    """Peak memory of the process and the processes it started, together."""
    elsewhere: float
    """Cores that other processes used meanwhile, besides this process and the server: noise."""
    steps: dict[str, float]


@dataclass(frozen=True)
class Figures:
    """Medians of a peer's runs with one number of records."""

    peer: str
    records: int
    runs: int
    records_per_second: float
    process_records_per_second: float
    cpu_microseconds_per_record: float
    peak_mebibytes: float
    elsewhere: float
    steps: dict[str, float]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Figures:
        """The medians of runs of one peer and one size."""
        first = runs[0]
        return cls(
            peer=first.peer,
            records=first.records,
            runs=len(runs),
            records_per_second=first.records / median(run.seconds for run in runs),
            process_records_per_second=first.records / median(run.process_seconds for run in runs),
            cpu_microseconds_per_record=median(run.cpu_seconds for run in runs) * 1e6 / first.records,
            peak_mebibytes=median(run.peak_bytes for run in runs) / 2**20,
            elsewhere=median(run.elsewhere for run in runs),
            steps={step: median(run.steps[step] for run in runs) for step in first.steps},
        )


PEERS = (
    Peer("bookferry", "flow", "Bookferry's flow: raw payloads, proof, staged tables, checksums, snapshot, catalogue"),
    Peer("bookferry backup", "command", "the same as the command, Dagster and start-up included", needs="cli.main"),
    Peer(REFERENCE, "dlt_parquet", "dlt, REST source to Parquet, children in tables of their own", needs="dlt"),
    Peer(
        "dlt parallel",
        "dlt_parallel",
        "the same with the worker processes that its documentation advises",
        needs="dlt",
        largest=250_000,
    ),
    Peer(
        "dlt Arrow",
        "dlt_arrow",
        "dlt by its Arrow path: one table, in which the children stay lists",
        needs="dlt",
        largest=250_000,
    ),
    Peer(
        "Airbyte CDK",
        "airbyte",
        "declarative source of Airbyte's CDK, to JSON lines",
        largest=250_000,
        python=ROOT / ".venv" / "peers" / "bin" / "python",
    ),
    Peer("pandas", "pandas_parquet", "httpx and `json_normalize`, one table, the library in memory", largest=250_000),
    Peer("nothing", "nothing", "every page fetched and discarded: what the server can do"),
)


def measure(sizes: Sequence[int], runs: int, peers: Sequence[Peer], noise: float) -> list[Figures]:
    """All medians: each peer runs `runs` times for each size, in turns, or until it took `ENOUGH`.

    `noise`: cores that other work may use.
    """
    figures = []
    for size in sizes:
        taken: dict[str, list[Run]] = {peer.name: [] for peer in peers if size <= peer.largest}
        with _server(size) as (server, base_url):
            for _turn in range(runs):
                for peer in peers:
                    before = taken.get(peer.name)
                    if before is not None and sum(run.process_seconds for run in before) < ENOUGH:
                        before.append(_quiet_run(peer, server, base_url, size, noise))
        figures += [Figures.of(done) for done in taken.values()]
    return figures


def _quiet_run(peer: Peer, server: int, base_url: str, records: int, noise: float) -> Run:
    """One run with the allowed noise, or the quietest of `TRIES`."""
    best: Run | None = None
    for _try in range(TRIES):
        wait_for_quiet(noise, PATIENCE)
        run = _run(peer, server, base_url, records)
        best = run if best is None or run.elsewhere < best.elsewhere else best
        if best.elsewhere <= noise:
            break
    assert best is not None
    return best


def _run(peer: Peer, server: int, base_url: str, records: int) -> Run:
    command = [str(peer.python), "-m", f"benchmarks.peers.{peer.module}", base_url]
    with tempfile.TemporaryDirectory(prefix="bookferry-bench-") as folder:
        busy, served, started = busy_seconds(), cpu_seconds(server), time.perf_counter()
        process = subprocess.Popen([*command, folder], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        with process.stdout, MemoryWatch(process.pid) as memory:
            printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process_seconds = time.perf_counter() - started
        own = usage.ru_utime + usage.ru_stime
        elsewhere = busy_seconds() - busy - own - (cpu_seconds(server) - served)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{peer.name} ended with {process.returncode}; see its message above.")
    result = json.loads(printed.splitlines()[-1])
    if result["records"] != records:
        raise SystemExit(f"{peer.name} copied {result['records']:,} of {records:,} records: not comparable.")
    run = Run(
        peer=peer.name,
        records=records,
        seconds=result["seconds"],
        process_seconds=process_seconds,
        cpu_seconds=own,
        peak_bytes=max(memory.peak_bytes, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)),
        elsewhere=max(0.0, elsewhere / process_seconds),
        steps=result.get("steps", {}),
    )
    _say(f"{records:>9,} records  {peer.name:<17} {run.seconds:7.2f} s   ({run.elsewhere:.1f} cores busy elsewhere)")
    return run


@contextmanager
def _server(records: int) -> Iterator[tuple[int, str]]:
    command = [sys.executable, "-m", "benchmarks.server", "--records", str(records)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().split()[1]
        finally:
            process.terminate()


def ratios(figures: Sequence[Figures]) -> dict[str, Any]:
    """Compares each peer with dlt at each size, and each peer's memory at the largest size with that at the smallest."""
    by_key = {(one.peer, one.records): one for one in figures}
    sizes = sorted({one.records for one in figures})
    to_reference = [
        {
            "peer": one.peer,
            "records": one.records,
            "records_per_second": one.records_per_second / rival.records_per_second,
            "process_records_per_second": one.process_records_per_second / rival.process_records_per_second,
            "peak_memory": one.peak_mebibytes / rival.peak_mebibytes,
        }
        for one in figures
        if (rival := by_key.get((REFERENCE, one.records))) is not None
    ]
    growth = {
        one.peer: one.peak_mebibytes / by_key[one.peer, sizes[0]].peak_mebibytes
        for one in figures
        if one.records == sizes[-1] != sizes[0]
    }
    return {f"to_{REFERENCE}": to_reference, "memory_growth": growth}


def table(document: Mapping[str, Any]) -> str:
    """The figures of a document with `figures` as Markdown, with a line about each tool."""
    figures = [Figures(**one) for one in document["figures"]]
    peers = [peer for peer in PEERS if any(one.peer == peer.name for one in figures)]
    compared = ratios(figures)
    to_reference = {(one["peer"], one["records"]): one for one in compared[f"to_{REFERENCE}"]}
    lines = [
        f"| records | tool | records/s | × {REFERENCE} | with start-up | × {REFERENCE} | CPU µs a record | peak MiB | busy elsewhere |",
        "|--:|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in figures:
        ratio = to_reference.get((one.peer, one.records), {})
        cells = (
            f"{one.records:,}",
            one.peer,
            f"{one.records_per_second:,.0f}",
            _times(ratio.get("records_per_second")),
            f"{one.process_records_per_second:,.0f}",
            _times(ratio.get("process_records_per_second")),
            f"{one.cpu_microseconds_per_record:.1f}",
            f"{one.peak_mebibytes:.0f}",
            f"{one.elsewhere:.1f} cores",
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- {peer.name}: {peer.what}." for peer in peers)]
    for peer, growth in compared["memory_growth"].items():
        sizes = sorted({one.records for one in figures})
        lines.append(f"- Peak memory of {peer} with {sizes[-1]:,} records: {growth:.2f} × that with {sizes[0]:,}.")
    for one in figures:
        if one.steps:
            steps = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in one.steps.items())
            lines.append(f"- Steps of {one.peer} with {one.records:,} records: {steps}.")
    return "\n".join(lines)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _arguments(peers: Sequence[Peer]) -> argparse.Namespace:
    names = [peer.name for peer in peers]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backup", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--records", type=int, nargs="+", default=SIZES, metavar="N", help=f"sizes of the library (default: {SIZES})"
    )
    parser.add_argument(
        "--runs", type=int, default=3, metavar="N", help="runs of each tool with each size, at most (default: 3)"
    )
    parser.add_argument(
        "--peers", nargs="+", choices=names, default=names, metavar="NAME", help=f"of: {', '.join(names)}"
    )
    parser.add_argument(
        "--noise", type=float, default=math.inf, metavar="CORES", help="repeat a run with more than that busy elsewhere"
    )
    parser.add_argument("--quick", action="store_true", help="one run with 5,000 records: does it work?")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    here = [peer for peer in PEERS if peer.python.exists() and _exists(peer.needs)]
    arguments = _arguments(here)
    peers = [peer for peer in here if peer.name in arguments.peers]
    sizes, runs = ([5000], 1) if arguments.quick else (sorted(arguments.records), arguments.runs)
    day, figures = datetime.now(UTC).date(), measure(sizes, runs, peers, arguments.noise)
    document = {"figures": [asdict(one) for one in figures], **ratios(figures)}
    print(json.dumps(document, indent=2) if arguments.json else f"{day}, {in_words()}\n\n{table(document)}")


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
