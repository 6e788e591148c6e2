"""A sandbox with a library of real records, and an empty one for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.moving import Desk
from tests.sandbox.process import SandboxProcess

RECORDS = 95
"""The first of the real records; three of them have files, two covers."""
EMPTY = 64
"""Empty libraries: one for each test."""


@pytest.fixture(scope="session")
def sandbox() -> Iterator[SandboxProcess]:
    """One for all tests."""
    empty = [f"--tenant=empty{number}=empty" for number in range(EMPTY)]
    with SandboxProcess(f"--tenant=library=real:{RECORDS}", *empty, "--requests-per-minute", "0") as process:
        yield process


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Each empty library is used once."""
    return count()


@pytest.fixture(scope="session")
def backed_up(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a snapshot of the source, to be copied: the backup is not what these tests are about."""
    folder = tmp_path_factory.mktemp("backed-up")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_USER", sandbox.user)
        patch.setenv("TEST_PASSWORD", sandbox.password)
        Desk.at(folder, sandbox, "library", "empty0").back_up()
    return folder / "library-data"


@pytest.fixture
def desk(
    sandbox: SandboxProcess,
    numbers: Iterator[int],
    backed_up: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    """A desk with a snapshot and an empty target."""
    monkeypatch.setenv("TEST_USER", sandbox.user)
    monkeypatch.setenv("TEST_PASSWORD", sandbox.password)
    sandbox.reset("faults", "settings")
    shutil.copytree(backed_up, tmp_path / "library-data")
    return Desk.at(tmp_path, sandbox, "library", f"empty{next(numbers)}")


@pytest.fixture
def snapshot(desk: Desk) -> Snapshot:
    """The source, backed up with its files."""
    return desk.newest()


@pytest.fixture
def another_target(desk: Desk, numbers: Iterator[int], tmp_path: Path) -> Callable[[], Desk]:
    """Makes a desk with the same snapshot and another empty target."""

    def make() -> Desk:
        number = next(numbers)
        shutil.copytree(desk.config.parent / "library-data", tmp_path / f"other{number}" / "library-data")
        return Desk.at(tmp_path / f"other{number}", desk.sandbox, "library", f"empty{number}")

    return make
