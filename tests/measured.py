"""Measures each test, and lists those that `make test` leaves to `make test-all` at little loss of coverage: tests/long_tests.txt.

    .venv/bin/pip install coverage
    MEASURED=FOLDER CI=true .venv/bin/pytest -p tests.measured -n 4 --dist loadfile   # what each test reaches, and its seconds
    .venv/bin/python -m tests.measured FOLDER                                         # the list from them

A short test stays. Of the others those stay that reach lines or branches which no test that stays reaches, the quickest for what they add
first, until the next would take more than a second for each of them. What commands of tests/cli/forks.py reach counts for their test;
processes that end by SIGKILL and those of an installation of its own do not count.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("long_tests.txt")
SHORT = 0.1
"""Seconds of a test that stays whatever it reaches."""

WORTH = 1.0
"""Seconds that a line or branch may cost."""

HEAD = """# `make test` leaves these tests out, `make test-all` and CI do not: the others reach nearly the same lines and branches.
# Made by tests/measured.py; a test that is marked `long` where it is defined is not listed.
"""
_FOLDERS = ("assets_defs", "cli", "pipelines", "resources")

Reached = tuple[str, int, int]
"""A way through a file: from one line to the next."""


def listed() -> frozenset[str]:
    """The node ids of the list."""
    return frozenset(line for line in LIST.read_text("utf-8").splitlines() if not line.startswith("#"))


def _started(context: str | None) -> Any:
    """Measure this process from now on."""
    import coverage  # noqa: PLC0415  which only this measurement needs

    measured = coverage.Coverage(
        data_file=str(Path(os.environ["MEASURED"], "reached")),
        data_suffix=str(os.getpid()),
        branch=True,
        source=[str(ROOT / folder) for folder in _FOLDERS],
        context=context,
        config_file=False,
    )
    measured.start()
    return measured


def measure_command(test: str) -> None:
    """Measure a forked command to its end, if somebody measures."""
    if "MEASURED" not in os.environ:
        return
    measured, end = _started(test), os._exit

    def save_and_end(status: int) -> NoReturn:
        measured.stop()
        measured.save()
        end(status)

    os._exit = save_and_end


class _Measurement:
    """Of one process of tests."""

    def __init__(self) -> None:
        self._coverage = _started(None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Write a line for each test: its seconds, whether it is marked, its node id."""
        self._coverage.switch_context(item.nodeid)
        before = time.monotonic()
        result = yield
        marked = item.get_closest_marker("long") is not None and item.nodeid not in listed()
        with Path(os.environ["MEASURED"], f"seconds.{os.getpid()}").open("a", encoding="utf-8") as file:
            file.write(f"{time.monotonic() - before:.3f}\t{marked:d}\t{item.nodeid}\n")
        return result  # type: ignore[return-value]

    def pytest_unconfigure(self) -> None:
        """Save what was reached."""
        self._coverage.stop()
        self._coverage.save()


def pytest_configure(config: pytest.Config) -> None:
    """Measure in the processes that run tests."""
    if "PYTEST_XDIST_WORKER" in os.environ or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(_Measurement())


class Measured(NamedTuple):
    """What a measurement found of the tests that are not marked."""

    seconds: Mapping[str, float]
    reached: Mapping[str, set[int]]
    """Test → numbers of the ways that it reaches."""
    ways: list[Reached]


def read(folder: Path) -> Measured:
    """The results of a measurement."""
    lines = [line.split("\t") for path in folder.glob("seconds.*") for line in path.read_text("utf-8").splitlines()]
    seconds = {node: float(taken) for taken, marked, node in lines if marked == "0"}
    numbers: dict[Reached, int] = {}
    reached: dict[str, set[int]] = defaultdict(set)
    query = "SELECT context, path, fromno, tono FROM arc JOIN file ON file.id = file_id JOIN context ON context.id = context_id"
    for path in folder.glob("reached.*"):
        with suppress(sqlite3.OperationalError), sqlite3.connect(path) as data:  # of a process that was killed
            for test, file, *way in data.execute(query):
                if test in seconds:
                    reached[test].add(numbers.setdefault((file, *way), len(numbers)))
    return Measured(seconds, reached, list(numbers))


def left_out(measured: Measured) -> set[str]:
    """The tests that `make test` leaves out."""
    stay = {test for test, taken in measured.seconds.items() if taken < SHORT}
    there = set().union(*(measured.reached.get(test, ()) for test in stay))
    rest = {test: measured.reached.get(test, set()) - there for test in measured.seconds.keys() - stay}
    while rest := {test: new for test, ways in rest.items() if (new := ways - there)}:
        best = min(rest, key=lambda test: (measured.seconds[test] / len(rest[test]), test))
        if measured.seconds[best] > WORTH * len(rest[best]):
            break
        stay.add(best)
        there |= rest.pop(best)
    return measured.seconds.keys() - stay


def main(folder: Path) -> None:
    """Write the list."""
    measured = read(folder)
    long = left_out(measured)
    LIST.write_text(HEAD + "".join(f"{node}\n" for node in sorted(long)), encoding="utf-8")
    stays = measured.seconds.keys() - long
    reached = set().union(*(measured.reached.get(test, ()) for test in stays))
    sys.stdout.write(
        f"{len(long)} of {len(measured.seconds)} tests are left out. "
        f"The others take {sum(measured.seconds[test] for test in stays):.0f} of {sum(measured.seconds.values()):.0f} s "
        f"and reach {len(reached)} of {len(measured.ways)} ways from line to line.\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
