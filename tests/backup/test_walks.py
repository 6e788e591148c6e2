"""I4: a list whose records change places between two requests is read once more before a snapshot is called partial."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.store.snapshots.facts import ResourceFacts
from tests.backup.files.file_library import PER_PAGE, FileLibrary
from tests.backup.runner import BackupRunner, ids_in
from tests.service.scripted import Answer, Received

RECORDS = 130
Records = list[dict[str, Any]]


class RestlessLibrary(FileLibrary):
    """A library of three pages in no order; `view` makes each answer: the list, the number of the page, and how often it was asked for."""

    def __init__(
        self,
        view: Callable[[Records, int, int], Records],
        *,
        in_order: bool = False,
        total: Callable[[int], str] | None = lambda _times: str(RECORDS),
    ) -> None:
        super().__init__()
        self._view, self._total, self._asked = view, total, Counter[int]()
        numbers = list(range(1, RECORDS + 1))
        if not in_order:
            random.Random(7).shuffle(numbers)
        for number in numbers:
            self.publications[number] = {"id": number, "title": f"Title {number}", "cover": None, "assets": []}

    def _answer(self, request: Received) -> Answer:
        if not request.path.endswith("/publications/all"):
            return super()._answer(request)
        page = int(request.query["page"])
        self._asked[page] += 1
        records = self._view(self.listed(), page, self._asked[page])[(page - 1) * PER_PAGE : page * PER_PAGE]
        return Answer({"records": records}, headers={"x-total": self._total(self._asked[page])} if self._total else {})


def swapped(records: Records, page: int, times: int) -> Records:
    """Two neighbours at the end of a page change places while the first walk is on its way: one comes twice, the other never."""
    place = PER_PAGE if page == 1 and times == 1 else PER_PAGE * 2 if page == 2 and times == 2 else None
    if place is None:
        return records
    return [*records[: place - 1], records[place], records[place - 1], *records[place + 1 :]]


def forgetful(records: Records, page: int, times: int) -> Records:
    """Each time another record of the second page is missing, and the next page has no other in its place."""
    if page != 2:
        return records
    lost = PER_PAGE + times
    return [*records[:lost], *records[lost + 1 : 2 * PER_PAGE]]


def read(folder: Path, library: RestlessLibrary) -> tuple[ResourceFacts, list[int]]:
    snapshot = BackupRunner(folder, library.library.url).back_up()
    ids = ids_in(snapshot)
    assert sorted(ids_in(snapshot, "publications")) == sorted(ids)
    return snapshot.manifest.resources["publications"], ids


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("view", [swapped, forgetful])
def test_walks_that_disagree_are_counted_together(
    tmp_path: Path, view: Callable[[Records, int, int], Records], *, in_order: bool
) -> None:
    """X-Total stands still, and together they have as many records as it says: each is in the snapshot, once."""
    with RestlessLibrary(view, in_order=in_order) as library:
        facts, ids = read(tmp_path, library)
    assert (facts.complete, facts.problems) == (True, [])
    assert sorted(ids) == list(range(1, RECORDS + 1))
    assert (facts.records, facts.distinct_ids, facts.x_total) == (RECORDS, RECORDS, RECORDS)
    assert facts.requests == len(library.library.received)
    assert not [note for note in facts.notes if "only an earlier walk" in note]


def test_what_walks_without_a_proof_read_is_counted_once(tmp_path: Path) -> None:
    """One record is never sent, and in its place comes another one, each time a different one."""

    def view(records: Records, _page: int, times: int) -> Records:
        return [records[-1 - times], *records[1:-1], records[times]]

    with RestlessLibrary(view) as library:
        facts, ids = read(tmp_path, library)
    assert (len(ids), len(set(ids))) == (RECORDS - 2, RECORDS - 2)
    assert (facts.complete, facts.records, facts.distinct_ids) == (False, RECORDS - 2, RECORDS - 2)
    assert facts.problems[-1] == (
        f"The service announced {RECORDS} records (X-Total) and sent {RECORDS - 2} different ones."
    )


@pytest.mark.parametrize("total", [None, lambda times: str(RECORDS + times % 2)], ids=["no X-Total", "it changes"])
def test_a_record_that_comes_twice_is_in_a_partial_snapshot_once(
    tmp_path: Path, total: Callable[[int], str] | None
) -> None:
    """An order that is another one in each answer shows records twice, and nothing proves that the walks have all of them."""

    def view(records: Records, page: int, times: int) -> Records:
        return random.Random(page * 10 + times).sample(records, len(records))

    with RestlessLibrary(view, total=total) as library:
        facts, ids = read(tmp_path, library)
    assert (facts.complete, len(ids)) == (False, len(set(ids)))
    assert facts.records == facts.distinct_ids == len(ids)
    assert "records listed twice" in facts.problems[0]


def test_a_record_that_no_walk_reads_is_lacking_after_two_equal_walks(tmp_path: Path) -> None:
    """The same result again will not improve; nothing says then that every record is there."""
    with RestlessLibrary(lambda records, _page, _times: records[:-1]) as library:
        facts, ids = read(tmp_path, library)
    assert (facts.complete, facts.walks, len(ids)) == (False, 2, RECORDS - 1)
    assert facts.problems == [
        f"The service announced {RECORDS} records (X-Total) and sent {RECORDS - 1} different ones."
    ]
    assert facts.notes == []
