"""CPU time and memory of processes and of the machine, from Linux; on other systems, unknown figures are 0."""

from __future__ import annotations

import math
import os
import platform
import threading
import time
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

EVERY = 0.05
"""Seconds between two samples of memory: a batch of records lives longer."""

QUIET_FOR = 2.0
"""Length of a quiet moment in seconds."""

PACKAGES = ("bookferry", "dagster", "dlt", "duckdb", "httpx", "pandas", "pyarrow")
"""Their versions are part of a result."""

_PROC = Path("/proc")


def in_words() -> str:
    """The machine in words, without its name."""
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()} {platform.machine()}"


def describe() -> dict[str, Any]:
    """The machine in words, and the versions of what is measured on it."""
    versions = {name: metadata.version(name) for name in PACKAGES if find_spec(name.replace("-", "_")) is not None}
    return {"machine": f"{in_words()}, {_processor()}", "versions": versions}


def _processor() -> str:
    with suppress(OSError):
        for line in (_PROC / "cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "processor unknown"


def busy_seconds() -> float:
    """CPU seconds of the whole machine since its start."""
    with suppress(OSError):
        user, nice, system, _idle, _waiting, irq, softirq = (_PROC / "stat").read_text().split(maxsplit=8)[1:8]
        return sum(map(int, (user, nice, system, irq, softirq))) / os.sysconf("SC_CLK_TCK")
    return 0.0


def cpu_seconds(process: int) -> float:
    """CPU seconds of a running process."""
    with suppress(OSError):
        fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def family_cpu_seconds(process: int) -> float:
    """CPU seconds of a running process and of those that it started, also of those that have ended and that it waited for."""
    ended = 0.0
    with suppress(OSError):
        fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
        ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return ended + sum(map(cpu_seconds, _family(process)))


def cpu_seconds_of_server(folder: Path) -> float:
    """CPU seconds of the Postgres server whose data is in `folder`: those of its running processes and of those that have ended."""
    with suppress(OSError, ValueError, IndexError):
        server = int((folder / "postmaster.pid").read_text().splitlines()[0])
        fields = (_PROC / str(server) / "stat").read_text().rpartition(")")[2].split()
        ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
        return ended + sum(map(cpu_seconds, _family(server)))
    return 0.0


def wait_for_quiet(cores: float, patience: float) -> None:
    """Wait until at most that many cores are busy, for `patience` seconds at most."""
    until = time.monotonic() + patience
    while math.isfinite(cores) and time.monotonic() < until:
        before = busy_seconds()
        time.sleep(QUIET_FOR)
        if busy_seconds() - before <= cores * QUIET_FOR:
            return


class MemoryWatch:
    """Samples the resident memory of a process and of the processes it started, together.

    Where it started some, a page that several processes share counts in equal parts for each (Linux: PSS). To ask for that takes a
    millisecond, so it is done only where the resident memory has never been larger.
    """

    def __init__(self, process: int, every: float = EVERY) -> None:
        self.peak_bytes = 0
        self._most_resident = 0
        self._every = every
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
        while not self._ended.wait(self._every):
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
