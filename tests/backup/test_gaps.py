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
    `most`: of the largest page. `allowed`: the sizes that may be asked for. `endpoint`: the only one of the list.
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
        most: int = 50,
        allowed: Collection[int] = range(1, 51),
        endpoint: str = "/publications",
    ) -> None:
        self.bad, self.answer, self.headers, self.size = {*bad}, answer, headers, size
        self.most, self.allowed, self.endpoint = most, allowed, endpoint
        self.ids: Sequence[int] = range(records, 0, -1) if newest_first else range(1, records + 1)
        self.url, self.passes = "", False

    def serve(self, request: Received) -> Answer:
        """A page of the list."""
        if not request.path.endswith(self.endpoint):
            return Answer({}, status=404)
        size, page = self.size or min(int(request.query["per_page"]), self.most), int(request.query["page"])
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
            headers["link"] = f'<{self.url}/api/v2{self.endpoint}?per_page={size}&page={page + 1}>; rel="next"'
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
        ("404", "both", False),
        ("404", "none", False),
        ("404", "link", True),
        ("403", "total", True),
        ("451", "total", False),
        ("an object", "total", False),
        ("no records", "both", True),
    ],
)
def test_one_record(tmp_path: Path, answer: str, headers: str, *, newest_first: bool) -> None:
    """Everything else is there, and the gap is named by its place and its neighbours; a dozen requests more."""
    library = Library({120}, ANSWERS[answer], headers=headers, newest_first=newest_first)
    with backed_up(tmp_path, library) as (runner, server):
        snapshot = runner.back_up()
        retries = sum(request.target.endswith("per_page=50&page=3") for request in server.received)
        assert len(server.received) - retries <= 1 + 6 + 5 + 5 + 2 + 1 + 2, (
            "a dozen, one once more, and the pages beside it"
        )
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


@pytest.mark.parametrize(
    ("answer", "bad"),
    [
        *(
            ("422", bad)
            for bad in ({1}, {260}, {120, 121}, {1, 77, 210, 260}, {105, 115, 125, 135, 145}, {*range(121, 140, 2)})
        ),
        *(("404", bad) for bad in ({1, 51}, {260}, {50, 51, 101}, {101, 150}, {60, 120, 160})),
    ],
    ids=str,
)
def test_any_place(tmp_path: Path, answer: str, bad: set[int]) -> None:
    library = Library(bad, ANSWERS[answer])
    with backed_up(tmp_path, library) as (runner, _server):
        snapshot = runner.back_up()
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*range(1, RECORDS + 1)} - bad
    gaps = len(bad) - (bad == {120, 121})
    assert sum("cannot send" in problem for problem in snapshot.manifest.problems) == gaps


@pytest.mark.parametrize("headers", ["both", "total"])
@pytest.mark.parametrize("bad", [1, 26])
def test_the_last_page_has_as_many_as_a_page_by_default(tmp_path: Path, headers: str, bad: int) -> None:
    """It does not show how many a full page has, where the first page cannot be read."""
    with backed_up(tmp_path, Library({bad}, ANSWERS["422"], headers=headers, records=75)) as (runner, _server):
        snapshot = runner.back_up()
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*range(1, 76)} - {bad}
    [gap] = [problem for problem in snapshot.manifest.problems if "cannot send" in problem]
    assert f"record {bad} of the list" in gap


@pytest.mark.parametrize("headers", ["both", "total"])
@pytest.mark.parametrize(
    ("most", "allowed", "which"),
    [
        (10, range(1, 51), "record 120 of the list (after id 119, before id 121)"),
        (20, range(1, 51), "record 120 of the list (after id 119, before id 121)"),
        (30, range(1, 51), "record 120 of the list (after id 119, before id 121)"),
        (50, {25, 50}, "records 101 to 125 of the list (after id 100, before id 126)"),
        (50, range(5, 51), "records 116 to 120 of the list (after id 115, before id 121)"),
        (50, range(10, 51), "records 111 to 120 of the list (after id 110, before id 121)"),
        (49, range(1, 51), "record 120 of the list (after id 119, before id 121)"),
    ],
)
def test_other_sizes_of_pages(tmp_path: Path, headers: str, most: int, allowed: Collection[int], which: str) -> None:
    """A service with a smaller limit, or that refuses some sizes: the smallest pages that it sends, and their places."""
    library = Library({120}, ANSWERS["422"], headers=headers, most=most, allowed=allowed)
    with backed_up(tmp_path, library) as (runner, server):
        snapshot = runner.back_up()
        assert len(server.received) < RECORDS / most + 30
    [gap] = [problem for problem in snapshot.manifest.problems if "cannot send" in problem]
    assert f"cannot send {which}" in gap
    smallest = next(size for size in (1, 5, 10, 25) if size in allowed)
    assert f"per_page={smallest}&" in gap
    assert len({*range(1, RECORDS + 1)} - {row["id"] for row in runner.raw_rows(snapshot)}) == smallest


@pytest.mark.parametrize("answer", ["500", "cut", "422"])
@pytest.mark.parametrize("bad", [1, 51, 150, 251, 260])
def test_requests_of_a_gap(tmp_path: Path, answer: str, bad: int) -> None:
    """The tries of its page, a dozen parts, one of them once more, and what is beside it; nowhere is it looked for twice."""
    with backed_up(tmp_path, Library({bad}, ANSWERS[answer])) as (runner, server):
        runner.back_up()
        retries = 0 if answer == "422" else 6
        assert len(server.received) <= 1 + 6 + retries + 12 + 1 + 3


@pytest.mark.parametrize(("status", "sizes"), [(429, {1, 2, 10}), (500, {1})])
def test_a_part_that_fails_once(tmp_path: Path, status: int, sizes: set[int]) -> None:
    """A part that has to wait, or that fails and then comes, is no gap."""
    library, failed = Library({120}, ANSWERS["500"]), set[str]()
    once = Answer({}, status=status, headers={"retry-after": "2"})

    def serve(request: Received) -> Answer:
        is_new = int(request.query.get("per_page", 0)) in sizes and request.target not in failed
        failed.add(request.target)
        return once if is_new else library.serve(request)

    with ScriptedServer(serve) as server:
        library.url = server.url
        runner = BackupRunner(tmp_path, server.url, "files = false", ManualClock())
        snapshot = runner.back_up()
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*library.ids} - {120}


@pytest.mark.parametrize("least", [10, 30])
def test_sizes_that_are_not_heeded(tmp_path: Path, least: int) -> None:
    """A service that sends more records than were asked for: the smallest pages that it sends as asked."""
    library = Library({120}, ANSWERS["500"])

    def serve(request: Received) -> Answer:
        size = int(request.query.get("per_page", 50))
        target = request.target.replace(f"per_page={size}", f"per_page={max(size, least)}")
        return library.serve(Received(request.method, target, request.headers))

    with ScriptedServer(serve) as server:
        library.url = server.url
        runner = BackupRunner(tmp_path, server.url, "files = false", ManualClock())
        snapshot = runner.back_up()
    gap = range(111, 121) if least == 10 else range(101, 151)
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*library.ids} - {*gap}


@pytest.mark.parametrize(
    ("answer", "headers", "size"),
    [
        ("404", "both", 0),
        ("500", "link", 0),
        ("422", "both", 50),
        ("404", "total", 50),
        ("500", "none", 50),
        ("403", "both", 25),
    ],
)
def test_a_whole_page(tmp_path: Path, answer: str, headers: str, size: int) -> None:
    """Where no smaller page can be read, or the service has pages of one size, the page is the gap."""
    bad, last = {120} if size else range(101, 151), 125 if size == 25 else 150
    with backed_up(tmp_path, Library(bad, ANSWERS[answer], headers=headers, size=size)) as (runner, server):
        snapshot = runner.back_up()
        assert len(server.received) < 100
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*range(1, RECORDS + 1)} - {*range(101, last + 1)}
    [gap] = [problem for problem in snapshot.manifest.problems if "cannot send" in problem]
    assert f"cannot send records 101 to {last} of the list (after id 100, before id {last + 1})" in gap


@pytest.mark.parametrize(
    ("answer", "headers", "bad", "unread"),
    [
        ("404", "both", range(10, 321, 12), "251 to 320 (70 records by X-Total)"),
        ("422", "both", range(56, 321, 8), "51 to 100 (50 records by X-Total)"),
        ("422", "none", range(10, 321, 12), "251 on"),
    ],
    ids=["up", "down", "without X-Total"],
)
def test_too_many(tmp_path: Path, answer: str, headers: str, bad: range, unread: str) -> None:
    """What was read is kept, the gaps met are named, and so is what was not read after them."""
    with backed_up(tmp_path, Library(bad, ANSWERS[answer], headers=headers, records=320)) as (runner, server):
        snapshot = runner.back_up()
        assert len(server.received) < 400
    problems = [problem for problem in snapshot.manifest.problems if "not read from place" in problem]
    assert [unread in problem and answer in problem for problem in problems] == [True]
    assert sum("cannot send record " in problem for problem in snapshot.manifest.problems) > 20
    first = int(unread.partition(" ")[0])
    expected = {*range(1, 321)} - {*bad} - {*range(first, first + 70 if first > 51 else 101)}
    assert {row["id"] for row in runner.raw_rows(snapshot)} == expected


@pytest.mark.parametrize("answer", ["500", "404", "no records but X-Total"])
@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize(
    ("records", "bad", "most"),
    [
        (10, {1}, 50),
        (2, {2}, 50),
        (50, {1, 40}, 50),
        (49, {49}, 25),
        (120, {1, 60}, 25),
        (260, {1, 30, 100}, 20),
        (151, {151, 1}, 40),
    ],
)
def test_the_first_page(
    tmp_path: Path, answer: str, records: int, bad: set[int], most: int, *, newest_first: bool
) -> None:
    """Of a short list, and of one with smaller pages than were asked for, whose size another page shows."""
    library = Library(bad, ANSWERS[answer], records=records, most=most, newest_first=newest_first)
    with backed_up(tmp_path, library) as (runner, _server):
        snapshot = runner.back_up()
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*library.ids} - bad
    assert len(snapshot.manifest.problems) == len(bad) + 1, "each gap and the count"


@pytest.mark.parametrize("answer", ["500", "no records but X-Total"])
def test_the_first_page_of_the_better_endpoint(tmp_path: Path, answer: str) -> None:
    """It is read around like that of the last one."""
    library = Library({1}, ANSWERS[answer], endpoint="/publications/all")
    with backed_up(tmp_path, library) as (runner, _server):
        snapshot = runner.back_up()
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*library.ids} - {1}
    assert len(snapshot.manifest.problems) == 2, "the gap and the count"


@pytest.mark.parametrize("headers", ["both", "total"])
def test_pages_of_one_size(tmp_path: Path, headers: str) -> None:
    """Some of them cannot be sent, the first and the last one too: their records are named, and those of the others are there."""
    library = Library({10, 60, 100}, ANSWERS["500"], headers=headers, records=100, size=25)
    with backed_up(tmp_path, library) as (runner, server):
        snapshot = runner.back_up()
        assert len(server.received) < 100
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*range(26, 51)}
    gaps = [problem for problem in snapshot.manifest.problems if "cannot send" in problem]
    assert [gap.partition(" of the list")[0].rpartition("records ")[2] for gap in gaps] == [
        "1 to 25",
        "51 to 75",
        "76 to 100",
    ]


@pytest.mark.parametrize("answer", ["422", "500"])
@pytest.mark.parametrize("every", [2, 5])
def test_each_page_of_five_has_one(tmp_path: Path, answer: str, every: int) -> None:
    """Records are read one by one, up to the bound on gaps; the rest is named."""
    bad = range(every, RECORDS, every)
    with backed_up(tmp_path, Library(bad, ANSWERS[answer])) as (runner, server):
        snapshot = runner.back_up()
        assert len(server.received) < 400
    assert {row["id"] for row in runner.raw_rows(snapshot)} == {*range(1, 201)} - {*bad}
    assert sum("cannot send record " in problem for problem in snapshot.manifest.problems) > 20
    assert any("not read from place 201 to 260" in problem for problem in snapshot.manifest.problems)


def test_a_list_without_records_that_can_be_sent_alone(tmp_path: Path) -> None:
    """Nothing of the list was read: the run ends, after a bounded number of requests."""
    library = Library(range(2, RECORDS, 2), ANSWERS["422"], allowed=range(5, 51))
    with backed_up(tmp_path, library) as (runner, server):
        with pytest.raises(BookferryError, match="422"):
            runner.back_up()
        assert len(server.received) < 200


@pytest.mark.parametrize("answer", ["401", "403", "500"])
def test_the_whole_list_in_the_middle(tmp_path: Path, answer: str) -> None:
    """An outage, a sign-in that ended, a right that was taken away: no gap of the list, and the run ends."""
    library = Library((), ANSWERS[answer])

    def serve(request: Received) -> Answer:
        return library.serve(request) if len(server.received) < 4 else ANSWERS[answer]

    with ScriptedServer(serve) as server:
        library.url = server.url
        with pytest.raises(BookferryError, match=answer):
            BackupRunner(tmp_path, server.url, "files = false", ManualClock()).back_up()


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
