"""I4: people work on a library during its backup, over a real socket and onto a real disk."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.backup.flow import Backup
from pipelines.store.maintenance.verification import verify_named
from tests.backup.files.file_library import FileLibrary
from tests.backup.runner import BackupRunner
from tests.backup.test_killed import the_snapshot
from tests.service.scripted import Answer, Received

PAGES = 6


class BusyLibrary(FileLibrary):
    """A library that changes at random before some of its pages."""

    def __init__(self, seed: int, quiet: int) -> None:
        super().__init__()
        self._chance, self._quiet = random.Random(seed), quiet
        self.throughout: set[int] = set()
        self.answered = 0

    def furnish(self) -> None:
        """Six pages of publications without files, there from the beginning."""
        for number in range(1, PAGES * 50 - 10):
            self.publications[number] = {"id": number, "title": f"Title {number}", "cover": None, "assets": []}
        self.throughout = set(self.publications)

    def _answer(self, request: Received) -> Answer:
        if self.answered > 1:  # a change between the first two requests cannot be noticed
            self._work()
        self.answered += 1
        return super()._answer(request)

    def _work(self) -> None:
        if self._chance.randrange(self._quiet):
            return
        for _change in range(self._chance.randrange(1, 4)):
            number = self._chance.choice(list(self.publications))
            kind = self._chance.choice(["add", "delete", "edit"])
            if kind == "add":
                new = max(self.publications) + 1
                self.publications[new] = {"id": new, "title": "new", "cover": None, "assets": []}
            elif kind == "delete":
                del self.publications[number]
                self.throughout.discard(number)
            else:
                self.publications[number]["title"] += " (edited)"


@pytest.fixture
def busy(request: pytest.FixtureRequest) -> Iterator[BusyLibrary]:
    """A random library; the more often it rests, the sooner a walk succeeds."""
    seed: int = request.param
    with BusyLibrary(seed, quiet=(2, 6, 15)[seed % 3]) as file_library:
        file_library.furnish()
        yield file_library


@pytest.mark.parametrize("busy", range(12), indirect=True)
def test_a_complete_snapshot_has_every_record_that_stayed(tmp_path: Path, busy: BusyLibrary) -> None:
    """It has each record that lived throughout, once, or it is marked partial; its manifest is consistent."""
    runner = BackupRunner(tmp_path, busy.library.url)
    snapshot = runner.back_up()
    ids = pq.read_table(snapshot.path / "raw" / "publications.parquet").column("id").to_pylist()
    staged = pq.read_table(snapshot.path / "publications.parquet").column("id").to_pylist()
    assert sorted(ids) == sorted(staged)
    if snapshot.manifest.complete:
        assert busy.throughout <= set(ids)
        assert len(ids) == len(set(ids))
    assert len(busy.library.received) <= 3 * 3 * (PAGES + 2)
    [verified] = verify_named(Backup.open(runner.config).data, snapshot.name, now=datetime.now(UTC))
    assert verified.ok, verified.problems


def test_a_few_changes_do_not_make_every_snapshot_partial(tmp_path: Path) -> None:
    """Where few records move, another walk helps."""
    complete = 0
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with BusyLibrary(seed, quiet=15) as file_library:
            file_library.furnish()
            complete += BackupRunner(folder, file_library.library.url).back_up().manifest.complete
            assert (
                the_snapshot(BackupRunner(folder, file_library.library.url)).manifest.resources["publications"].walks
                <= 3
            )
    assert complete >= 2
