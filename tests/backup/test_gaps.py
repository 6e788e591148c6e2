"""A record that the service cannot send costs that record, and not the backup (I4, I6)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import BookferryError
from tests.backup.runner import backups_of
from tests.service.scripted import Answer, Received

RECORDS = 260

ANSWERS = {
    **{
        str(status): Answer({"error": {"code": "E", "message": "M"}}, status=status)
        for status in (401, 403, 404, 422, 451, 500)
    },
    "an object": Answer({}),
    "no records": Answer({"records": []}),
    "no JSON": Answer(b"<html>Something went wrong</html>"),
    "cut": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"),
}

NO_RECORDS_BUT_TOTAL = ANSWERS["no records but X-Total"] = Answer({"records": []})
"""With the headers of the page."""


class Library:
    """Publications 1 to `records`, in the order of their ids or the other way round. Pages with one of the `bad` ids get `answer`.

    `headers`: both, "total" or "link" alone, or "none". `passes`: the first time only. `size`: of all pages, whatever is asked for.
    `max_size`: of the largest page. `allowed`: the sizes that may be asked for. `endpoint`: the only one of the list.
    """

    def __init__(
        self,
        bad: Collection[int],
        answer: Answer,
        *,
        headers: str = "both",
        newest_first: bool = False,
        records: int = RECORDS,
        size: int = 0,
        max_size: int = 50,
        allowed: Collection[int] = range(1, 51),
        endpoint: str = "/publications",
    ) -> None:
        self.bad, self.answer, self.headers, self.size = {*bad}, answer, headers, size
        self.max_size, self.allowed, self.endpoint = max_size, allowed, endpoint
        self.ids: Sequence[int] = range(records, 0, -1) if newest_first else range(1, records + 1)
        self.passes = False

    def serve(self, request: Received) -> Answer:
        """A page of the list."""
        if not request.path.endswith(self.endpoint):
            return Answer({}, status=404)
        size, page = self.size or min(int(request.query["per_page"]), self.max_size), int(request.query["page"])
        if size not in self.allowed:
            return ANSWERS["422"]
        ids = self.ids[(page - 1) * size : page * size]
        if self.bad.intersection(ids):
            self.bad = set() if self.passes else self.bad
            if self.answer is not NO_RECORDS_BUT_TOTAL:
                return self.answer
            ids = []
        if not ids and self.headers != "both":
            return ANSWERS["404"]  # beyond the end
        headers = {"x-total": str(len(self.ids))} if self.headers in ("both", "total") else {}
        if self.headers in ("both", "link") and page * size < len(self.ids):
            headers["link"] = f'</api/v2{self.endpoint}?per_page={size}&page={page + 1}>; rel="next"'
        body = {"records": [{"id": number, "title": f"Title {number}"} for number in ids]}
        return Answer(body, headers=headers)


GAP = re.compile(
    r"cannot send records? (\d+)(?: to (\d+))? of the list(?: \((?:after id (\d+))?(?:, )?(?:before id (\d+))?\))?"
)
UNREAD = re.compile(r"not read from place (\d+) (?:to (\d+)|on)")

Case = tuple[Library, set[int], int]
"""A library, the ids that a backup of it lacks, and the most requests that it takes."""


def case(
    bad: Collection[int], answer: str = "422", lost: Collection[int] = (), requests: int = 0, **options: Any
) -> Case:
    library = Library(bad, ANSWERS[answer], **options)
    pages = len(library.ids) // (library.size or library.max_size) + 1
    return library, {*(lost or bad)}, requests or pages + 25 * len(bad)


CASES = [  # any places, orders and pages: tests/service/listing/test_gaps_model.py
    # one record, whatever the page answers
    *(
        case({120}, answer, headers=headers, newest_first=newest_first)
        for answer, headers, newest_first in (
            ("no JSON", "both", True),
            ("cut", "total", True),
            ("422", "none", False),
            ("404", "link", True),
            ("451", "total", False),
            ("an object", "total", False),
            ("no records", "both", True),
        )
    ),
    # smaller pages than were asked for, or sizes that are refused: the parts that are sent
    case({120}, headers="total", max_size=49),
    case({120}, lost=range(101, 151), allowed={25, 50}),
    case({120}, lost=range(111, 121), headers="total", allowed=range(10, 51)),
    # no smaller page can be read, or all pages have one size
    case(range(101, 151), "404", requests=100),
    case({120}, "500", range(101, 151), 100, headers="none", size=50),
    case({120}, "403", range(101, 126), 100, size=25),
    # the first page of the better endpoint
    *(case({1}, answer, endpoint="/publications/all") for answer in ("500", "no records but X-Total")),
    # too many: what was not read after them is named, too
    case(range(10, 321, 12), "404", {*range(10, 251, 12), *range(251, 321)}, 400, records=320),
    case(range(56, 321, 8), "422", {*range(51, 101), *range(104, 321, 8)}, 400, records=320),
    *(
        case(range(stride, RECORDS, stride), answer, {*range(stride, 201, stride), *range(201, 261)}, 400)
        for answer, stride in (("422", 5), ("500", 2))
    ),
]


@pytest.mark.parametrize(("library", "lost", "requests"), CASES)
def test_everything_else_is_read_and_each_gap_is_named(
    tmp_path: Path, library: Library, lost: set[int], requests: int
) -> None:
    """By its places and its neighbours; after the tries of its page, a dozen parts, one of them once more, and what is beside it."""
    with backups_of(tmp_path, library.serve) as (runner, server):
        snapshot = runner.back_up()
        assert len(server.received) <= requests
    manifest, ids, named = snapshot.manifest, [*library.ids], set[int]()
    assert not manifest.complete
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*ids} - lost
    for problem in manifest.problems:
        for first, last, after, before in GAP.findall(problem):
            place, end = int(first), int(last or first)
            named.update(ids[place - 1 : end])
            assert not after or int(after) == ids[place - 2]
            assert not before or int(before) == ids[end]
            assert after or (place - 1) % 25 == 0 or ids[place - 2] in lost
            assert before or end % 25 == 0 or end == len(ids) or ids[end] in lost
            assert "othing was lost" not in problem
        for first, last in UNREAD.findall(problem):
            named.update(ids[int(first) - 1 : int(last or len(ids))])
    assert named == lost
    assert not any("every record" in note for note in manifest.notes)


@pytest.mark.parametrize(("status", "sizes"), [(429, {1, 2, 10}), (500, {1})])
def test_a_part_that_fails_once(tmp_path: Path, status: int, sizes: set[int]) -> None:
    """A part that has to wait, or that fails and then comes, is no gap."""
    library, failed = Library({120}, ANSWERS["500"]), set[str]()
    answer = Answer({}, status=status, headers={"retry-after": "2"})

    def serve(request: Received) -> Answer:
        is_new = int(request.query.get("per_page", 0)) in sizes and request.target not in failed
        failed.add(request.target)
        return answer if is_new else library.serve(request)

    with backups_of(tmp_path, serve) as (runner, _server):
        snapshot = runner.back_up()
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*library.ids} - {120}


@pytest.mark.parametrize(
    ("library", "answer", "served", "requests"),
    [
        (Library(range(2, RECORDS, 2), ANSWERS["422"], allowed=range(5, 51)), "422", None, 200),
        (Library(range(1, RECORDS + 1), ANSWERS["500"]), "500", None, 40),
        *((Library((), ANSWERS[answer]), answer, 4, 100) for answer in ("401", "403", "500")),
    ],
)
def test_a_list_of_which_nothing_can_be_read(
    tmp_path: Path, library: Library, answer: str, served: int | None, requests: int
) -> None:
    """Or nothing any more: an outage, a sign-in that ended, a right that was taken away. No gap of the list: the run ends."""

    def serve(request: Received) -> Answer:
        return library.serve(request) if served is None or len(server.received) < served else ANSWERS[answer]

    with backups_of(tmp_path, serve) as (runner, server):
        with pytest.raises(BookferryError, match=answer):
            runner.back_up()
        assert len(server.received) < requests


def test_a_failure_that_passes(tmp_path: Path) -> None:
    """At once, it leaves no gap. Later, the record is asked for again: a partial snapshot is never the newest complete one."""
    library = Library({120}, ANSWERS["422"])
    library.passes = True
    with backups_of(tmp_path, library.serve) as (runner, _server):
        assert runner.back_up("first").manifest.complete
        library.bad, library.passes = {120}, False
        assert not runner.back_up("second").manifest.complete
        library.bad.clear()
        assert runner.back_up("third").manifest.complete
