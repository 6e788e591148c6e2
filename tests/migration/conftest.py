"""A sandbox with a library of real records, and an empty library for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.conftest import without_catalogue
from tests.migration.library_pair import LibraryPair
from tests.sandbox.process import SandboxProcess

__all__ = ["without_catalogue"]

REAL = 95
"""Real records in the sandbox: the first with files are near the end of them."""
SOURCE = (*range(1, 15), 66, 85, 89, 92)
"""Those of them that the source keeps: one with an invalid identifier, three with files, two of these with covers."""
RECORDS = len(SOURCE)
EMPTY = 64
"""Empty libraries, one for each test."""


@pytest.fixture(scope="session")
def sandbox() -> Iterator[SandboxProcess]:
    """One sandbox for all tests."""
    empty = [f"--tenant=empty{number}=empty" for number in range(EMPTY)]
    libraries = (f"--tenant=library=real:{REAL}", f"--tenant=large=real:{REAL}")
    with SandboxProcess(*libraries, *empty, "--requests-per-minute", "0") as process:
        process.keep(SOURCE)
        yield process


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """The numbers of the empty libraries, each once."""
    return count()


@pytest.fixture(scope="session")
def backed_up(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a snapshot of the source. Tests copy it, because they do not test the backup."""
    folder = tmp_path_factory.mktemp("backed-up")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_USER", sandbox.user)
        patch.setenv("TEST_PASSWORD", sandbox.password)
        LibraryPair.at(folder, sandbox, "library", "empty0").back_up()
    return folder / "library-data"


@pytest.fixture
def pair(
    sandbox: SandboxProcess,
    numbers: Iterator[int],
    backed_up: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> LibraryPair:
    """A library with a snapshot, and an empty target."""
    monkeypatch.setenv("TEST_USER", sandbox.user)
    monkeypatch.setenv("TEST_PASSWORD", sandbox.password)
    sandbox.reset("faults", "settings")
    shutil.copytree(backed_up, tmp_path / "library-data")
    return LibraryPair.at(tmp_path, sandbox, "library", f"empty{next(numbers)}")


@pytest.fixture
def snapshot(pair: LibraryPair) -> Snapshot:
    """The source, backed up with its files."""
    return pair.newest()


@pytest.fixture
def another_target(pair: LibraryPair, numbers: Iterator[int], tmp_path: Path) -> Callable[[], LibraryPair]:
    """Makes a pair with the same snapshot and another empty target."""

    def make() -> LibraryPair:
        number = next(numbers)
        shutil.copytree(pair.config.parent / "library-data", tmp_path / f"other{number}" / "library-data")
        return LibraryPair.at(tmp_path / f"other{number}", pair.sandbox, pair.source, f"empty{number}")

    return make
