"""I4: people work on a library while it is backed up, over a real socket and onto a real disk."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.backup.flow import Backup
from pipelines.store.maintenance.verification import verify_named
from tests.backup.files.shelf import Desk, Shelf
from tests.backup.test_killed import the_snapshot
from tests.service.scripted import Answer, Received

PAGES = 6


class BusyShelf(Shelf):
    """A library that is changed before one in so many of its pages, by chance."""

    def __init__(self, seed: int, quiet: int) -> None:
        super().__init__()
        self._chance, self._quiet = random.Random(seed), quiet
        self.throughout: set[int] = set()
        self.answered = 0

    def furnish(self) -> None:
        """Six pages of publications without files; they are there from the beginning."""
        for number in range(1, PAGES * 50 - 10):
            self.publications[number] = {"id": number, "title": f"Title {number}", "cover": None, "assets": []}
        self.throughout = set(self.publications)

    def _answer(self, request: Received) -> Answer:
        if self.answered > 1:  # what happens between the first two requests, nobody can see
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
def busy(request: pytest.FixtureRequest) -> Iterator[BusyShelf]:
    """A library by chance; the more often it rests, the sooner a walk comes through."""
    seed: int = request.param
    with BusyShelf(seed, quiet=(2, 6, 15)[seed % 3]) as shelf:
        shelf.furnish()
        yield shelf


@pytest.mark.parametrize("busy", range(12), indirect=True)
def test_what_is_complete_holds_what_was_there_from_the_beginning_to_the_end(tmp_path: Path, busy: BusyShelf) -> None:
    """Every record that lived throughout is in it, none twice, or it is marked partial; and its manifest agrees with itself."""
    desk = Desk(tmp_path, busy.library.url)
    snapshot = desk.back_up()
    ids = pq.read_table(snapshot.path / "raw" / "publications.parquet").column("id").to_pylist()
    staged = pq.read_table(snapshot.path / "publications.parquet").column("id").to_pylist()
    assert sorted(ids) == sorted(staged)
    if snapshot.manifest.complete:
        assert busy.throughout <= set(ids)
        assert len(ids) == len(set(ids))
    assert len(busy.library.received) <= 3 * 3 * (PAGES + 2)
    [verified] = verify_named(Backup.open(desk.config).data, snapshot.name, now=datetime.now(UTC))
    assert verified.ok, verified.problems


def test_a_few_changes_do_not_make_every_night_partial(tmp_path: Path) -> None:
    """Where little moves, walking again helps."""
    complete = 0
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with BusyShelf(seed, quiet=15) as shelf:
            shelf.furnish()
            complete += Desk(folder, shelf.library.url).back_up().manifest.complete
            assert the_snapshot(Desk(folder, shelf.library.url)).manifest.resources["publications"].walks <= 3
    assert complete >= 2
