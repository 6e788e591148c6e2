"""Runs a command and measures it from outside: seconds, CPU time, and the peak memory of the largest of its processes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any

# An installation is compiled: what is measured must not compile itself at each start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROOT = Path(__file__).parents[1]
BOOKFERRY = str(Path(sys.executable).with_name("bookferry"))
TENANT = "bench"

NO_LIMIT = 1_000_000
"""Requests a minute: more than any machine sends."""

PACKAGES = ("dagster", "dlt", "duckdb", "httpx", "pandas", "pyarrow")

Figures = Mapping[str, Any]
"""What a benchmark measured; JSON."""


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
    with _stream(process) as stream:
        output = stream.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expected:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}; see its message above.")
    peak_bytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak_bytes / 2**20, output)


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
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    return f"{os.cpu_count()} cores, {processor}, {platform.system()}, Python {platform.python_version()}; {versions}"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; numbers with separators, texts to the left."""
    first = rows[0] if rows else columns
    sides = ["---" if isinstance(value, str) else "--:" for value in first]
    cells = [[f"{value:,}" if isinstance(value, int | float) else str(value) for value in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in ([*columns], sides, *cells))
