"""Measures the CPU seconds of each test, and lists those that `make test` leaves to `make test-all`: tests/long_tests.txt.

    CPU_TIMES=FOLDER .venv/bin/pytest -p tests.cpu_times -n 2 --dist loadfile      # one file for each process of tests
    .venv/bin/python -m tests.cpu_times FOLDER                                     # the list from them

A test is as long as it keeps cores busy, with the processes that it starts and waits for: what it waits for costs the others nothing. The
first test of a file pays for the fixtures of the file.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("long_tests.txt")
LIMIT = 1.5
"""CPU seconds."""

HEAD = f"""# Tests that take more than {LIMIT} CPU seconds. `make test` leaves them out, `make test-all` and CI do not.
# Made by tests/cpu_times.py; a test that is marked `long` where it is defined is not listed.
"""


def listed() -> frozenset[str]:
    """The node ids of the list."""
    return frozenset(line for line in LIST.read_text("utf-8").splitlines() if not line.startswith("#"))


def cpu_seconds() -> float:
    """Of this process and of the processes that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write a line for each test: its CPU seconds, whether it is marked, its node id."""
    before = cpu_seconds()
    result = yield
    marked = item.get_closest_marker("long") is not None and item.nodeid not in listed()
    with (Path(os.environ["CPU_TIMES"]) / str(os.getpid())).open("a", encoding="utf-8") as file:
        file.write(f"{cpu_seconds() - before:.3f}\t{marked:d}\t{item.nodeid}\n")
    return result  # type: ignore[return-value]


def main(folder: Path) -> None:
    """Write the list."""
    lines = [line.split("\t") for path in folder.iterdir() for line in path.read_text("utf-8").splitlines()]
    long = {node for seconds, marked, node in lines if float(seconds) >= LIMIT and marked == "0"}
    LIST.write_text(HEAD + "".join(f"{node}\n" for node in sorted(long)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
