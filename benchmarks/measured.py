"""Runs a command and measures it from outside: seconds, CPU time, peak memory; with those of the processes that it starts.

CPU time and memory come from Linux; on other systems, memory is that of the largest process alone.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Self

# An installation is compiled: what is measured must not compile itself at each start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROOT = Path(__file__).parents[1]
BOOKFERRY = str(Path(sys.executable).with_name("bookferry"))
TENANT = "bench"

NO_LIMIT = 1_000_000
"""Requests a minute: more than any machine sends."""

SAMPLE_SECONDS = 0.05
"""Between two samples of memory: a batch of records lives longer."""

PACKAGES = ("dagster", "dlt", "duckdb", "httpx", "pandas", "pyarrow")
_PROC = Path("/proc")


@dataclass(frozen=True)
class Cost:
    """What a process took. `output`: what it printed."""

    seconds: float
    cpu_seconds: float
    peak_mib: float
    output: str = ""

    def figures(self) -> dict[str, float]:
        """The numbers, rounded."""
        return {
            "seconds": round(self.seconds, 2),
            "cpu_seconds": round(self.cpu_seconds, 2),
            "peak_mib": round(self.peak_mib),
        }


def run(command: Sequence[str], *, expected: Sequence[int] = (0,), **options: Any) -> Cost:
    """Run a command to its end. `expected`: exit statuses that are no failure. `options`: those of `subprocess.Popen`."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **({"cwd": ROOT} | options))
    with _stream(process) as stream, MemoryWatch(process.pid) as memory:
        output = stream.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expected:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}; see its message above.")
    largest = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds, usage.ru_utime + usage.ru_stime, max(memory.peak_bytes, largest) / 2**20, output)


@contextmanager
def server(*arguments: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Serve a generated library. Yields its `base_url`, and a function that ends the server and returns what it printed."""
    command = [sys.executable, "-m", "benchmarks.server", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        stream = _stream(process)

        def end() -> str:
            process.terminate()
            return stream.read()

        try:
            yield stream.readline().split()[1], end
        finally:
            process.terminate()


def _stream(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def configured(base_url: str, folder: Path, requests_per_minute: int = NO_LIMIT) -> dict[str, str]:
    """Write a bookferry.toml for the library of `server` into a folder; returns the environment of commands that use it."""
    config = folder / "bookferry.toml"
    config.write_text(
        f'data = "library-data"\n\n[tenants.{TENANT}]\nbase_url = "{base_url}"\napi = "v2"\nusername_env = "BENCH_USER"\n'
        f'password_env = "BENCH_PASSWORD"\nrequests_per_minute = {requests_per_minute}\nfiles = false\n',
        encoding="utf-8",
    )
    return {**os.environ, "BENCH_USER": "bench", "BENCH_PASSWORD": "bench", "BOOKFERRY_CONFIG": str(config)}


def machine() -> str:
    """The machine and the versions of what is measured on it, in words and without a name."""
    processor = "processor unknown"
    with suppress(OSError):
        lines = (_PROC / "cpuinfo").read_text().splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    return f"{os.cpu_count()} cores, {processor}, {platform.system()}, Python {platform.python_version()}; {versions}"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; numbers with separators, texts to the left."""
    first = rows[0] if rows else columns
    sides = ["---" if isinstance(value, str) else "--:" for value in first]
    cells = [[f"{value:,}" if isinstance(value, int | float) else str(value) for value in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in ([*columns], sides, *cells))


class MemoryWatch:
    """Samples the resident memory of a process and of those that it started, together.

    Where it started some, a page that several processes share counts in equal parts for each (Linux: PSS). To ask for that takes a
    millisecond, so it is done only where the resident memory has never been larger.
    """

    def __init__(self, process: int) -> None:
        self.peak_bytes = 0
        self._most_resident = 0
        self._process = process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            members = _family(self._process)
            resident = sum(map(_resident_bytes, members))
            if resident > self._most_resident:
                self._most_resident = resident
                proportional = resident if len(members) == 1 else sum(map(_proportional_bytes, members))
                self.peak_bytes = max(self.peak_bytes, proportional)


def _family(process: int) -> list[int]:
    members = [process]
    for member in members:
        with suppress(OSError):
            for children in (_PROC / str(member) / "task").glob("*/children"):
                members += map(int, children.read_text().split())
    return members


def _resident_bytes(process: int) -> int:
    with suppress(OSError, IndexError):
        return int((_PROC / str(process) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _proportional_bytes(process: int) -> int:
    with suppress(OSError):
        for line in (_PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def cpu_seconds_of_server(process: int) -> float:
    """CPU seconds of a server's process, of those that it started, and of those of them that have ended."""
    own, ended = 0.0, 0.0
    with suppress(OSError, ValueError, IndexError):
        own, ended = _cpu_times(process)
    for member in _family(process)[1:]:
        with suppress(OSError, ValueError, IndexError):
            own += _cpu_times(member)[0]
    return own + ended


def _cpu_times(process: int) -> tuple[float, float]:
    """CPU seconds of a process, and of its ended children."""
    fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    times = [int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15]]
    return times[0] + times[1], times[2] + times[3]


Figures = Mapping[str, Any]
"""What a benchmark measured; JSON."""
