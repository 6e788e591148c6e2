"""A sandbox with a library of version 3, and for each test a target with its users and locations and almost nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import (
    CONTRIBUTED,
    RECORDS,
    VARIANTS,
    WITH_VARIANTS,
    back_up,
    make_pair,
    record_named,
    records_of,
)
from tests.sandbox.process import SandboxProcess

TARGETS = 64


@pytest.fixture(scope="package")
def sandbox() -> Iterator[SandboxProcess]:
    """A library, and for each test a target with its users, its locations and its first publication only."""
    targets = [f"--tenant=target{number}=real:1" for number in range(TARGETS)]
    with SandboxProcess(f"--tenant=library=real:{RECORDS}", *targets, "--requests-per-minute", "0") as process:
        yield process


@pytest.fixture(scope="package")
def numbers() -> Iterator[int]:
    return count()


@pytest.fixture(scope="package")
def backed_up(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backed-up")
    pair = make_pair(folder, sandbox, "target0")
    source = pair.library()
    users = {user["name"].partition(" ")[0]: user["id"] for user in records_of(source, "users").values()}
    for number, (name, references) in CONTRIBUTED.items():
        source.call("PATCH", f"publications/{number}", {"contributor": {"id": users[name]}, **references})
    author = record_named(records_of(source, "authorities"), WITH_VARIANTS)
    source.call("PATCH", f"authorities/{author['id']}", {"variants": VARIANTS})
    back_up(pair, "run")
    return folder / "library-data"


@pytest.fixture
def pair(sandbox: SandboxProcess, numbers: Iterator[int], backed_up: Path, tmp_path: Path) -> LibraryPair:
    sandbox.reset("faults", "settings", "counts")
    shutil.copytree(backed_up, tmp_path / "library-data")
    return make_pair(tmp_path, sandbox, f"target{next(numbers)}")


@pytest.fixture
def another_target(
    sandbox: SandboxProcess, numbers: Iterator[int], backed_up: Path, tmp_path: Path
) -> Callable[[], LibraryPair]:
    """Makes a pair with the same snapshot and another target."""

    def make() -> LibraryPair:
        number = next(numbers)
        folder = tmp_path / f"other{number}"
        shutil.copytree(backed_up, folder / "library-data")
        return make_pair(folder, sandbox, f"target{number}")

    return make
