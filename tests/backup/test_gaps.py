"""A record that the service cannot send costs that record, and not the backup (I4, I6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines.errors import BookferryError
from tests.backup.runner import BackupRunner
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received, ScriptedServer

RECORDS = 260

ANSWERS = {
    "500": Answer(b'{"error": {"code": "E", "message": "M"}}', status=500),
    "422": Answer(b'{"error": {"code": "E", "message": "M"}}', status=422),
    "no JSON": Answer(b"<html>Something went wrong</html>"),
    "cut": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"),
}


class Library:
    """Publications 1 to `RECORDS`, in the order of their ids or the other way round. Pages with one of the `bad` ids get `answer`.

    `passes`: the first time only.
    """

    def __init__(
        self, bad: Collection[int], answer: Answer, *, headers: str = "both", newest_first: bool = False
    ) -> None:
        self.bad, self.answer, self.headers = {*bad}, answer, headers
        self.ids: Sequence[int] = range(RECORDS, 0, -1) if newest_first else range(1, RECORDS + 1)
        self.url, self.passes = "", False

    def serve(self, request: Received) -> Answer:
        """A page of the list; there is no /publications/all."""
        if not request.path.endswith("/publications"):
            return Answer({}, status=404)
        size, page = int(request.query["per_page"]), int(request.query["page"])
        ids = self.ids[(page - 1) * size : page * size]
        if self.bad.intersection(ids):
            self.bad = set() if self.passes else self.bad
            return self.answer
        headers = {} if self.headers == "none" else {"x-total": str(RECORDS)}
        if self.headers == "both" and page * size < RECORDS:
            headers["link"] = f'<{self.url}/api/v2/publications?per_page={size}&page={page + 1}>; rel="next"'
        body = {"records": [{"id": number, "title": f"Title {number}"} for number in ids]}
        return Answer(body, headers=headers)


@contextmanager
def backed_up(folder: Path, library: Library) -> Iterator[tuple[BackupRunner, ScriptedServer]]:
    with ScriptedServer(library.serve) as server:
        library.url = server.url
        yield BackupRunner(folder, server.url, "files = false", ManualClock()), server


@pytest.mark.parametrize(
    ("answer", "headers", "newest_first"),
    [
        ("500", "both", False),
        ("no JSON", "both", True),
        ("422", "both", False),
        ("cut", "total", True),
        ("422", "total", False),
        ("422", "none", False),
    ],
)
def test_one_record(tmp_path: Path, answer: str, headers: str, *, newest_first: bool) -> None:
    """Everything else is there, and the gap is named by its place and its neighbours; a dozen requests more."""
    library = Library({120}, ANSWERS[answer], headers=headers, newest_first=newest_first)
    with backed_up(tmp_path, library) as (runner, server):
        snapshot = runner.back_up()
        retries = sum(request.target.endswith("per_page=50&page=3") for request in server.received)
        assert len(server.received) - retries <= 1 + 7 + 5 + 5 + 2 + 3 + 2
    manifest = snapshot.manifest
    assert not manifest.complete
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*range(1, RECORDS + 1)} - {120}
    place, before, after = (141, 121, 119) if newest_first else (120, 119, 121)
    [gap] = [problem for problem in manifest.problems if "cannot send" in problem]
    assert "othing was lost" not in gap
    assert gap.startswith(
        f"publications: The service cannot send record {place} of the list (after id {before}, before id {after})."
    )
    assert not any("every record" in note for note in manifest.notes)


@pytest.mark.parametrize("bad", [{1}, {260}, {50, 51}, {120, 121}, {101, 150}, {1, 77, 130, 260}], ids=str)
def test_any_place(tmp_path: Path, bad: set[int]) -> None:
    library = Library(bad, ANSWERS["422"])
    with backed_up(tmp_path, library) as (runner, _server):
        snapshot = runner.back_up()
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*range(1, RECORDS + 1)} - bad
    assert sum("cannot send" in problem for problem in snapshot.manifest.problems) == len(bad)


def test_too_many(tmp_path: Path) -> None:
    """A list of which many records cannot be sent is out of order: the run ends, after a bounded number of requests."""
    library = Library(range(2, RECORDS, 2), ANSWERS["422"])
    with backed_up(tmp_path, library) as (runner, server):
        with pytest.raises(BookferryError, match="422"):
            runner.back_up()
        assert len(server.received) < 100


def test_none_can_be_sent(tmp_path: Path) -> None:
    library = Library(range(1, RECORDS + 1), ANSWERS["500"])
    with backed_up(tmp_path, library) as (runner, server):
        with pytest.raises(BookferryError, match="500"):
            runner.back_up()
        assert len(server.received) < 40


def test_a_failure_that_passes_leaves_no_gap(tmp_path: Path) -> None:
    """The page is asked for once more as a whole."""
    library = Library({120}, ANSWERS["422"])
    library.passes = True
    with backed_up(tmp_path, library) as (runner, _server):
        assert runner.back_up().manifest.complete


def test_the_next_backup_is_whole(tmp_path: Path) -> None:
    """A partial snapshot is never the newest complete one, and the record is asked for again."""
    library = Library({120}, ANSWERS["500"])
    with backed_up(tmp_path, library) as (runner, _server):
        assert not runner.back_up("first").manifest.complete
        library.bad.clear()
        assert runner.back_up("second").manifest.complete
