"""Each row of a plan is written once, with its files, whatever comes back from the service (I8)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pipelines.migration.apply.attachments import UPLOADS
from pipelines.migration.apply.row_result import TRIES
from pipelines.migration.apply.run import ApplyResult, ApplyRun
from pipelines.migration.apply.writer import Writer
from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.model.step import Step
from pipelines.records.files import ASSET, COVER
from pipelines.records.tables.publication_fields import REFERENCES, WRITTEN
from pipelines.service.client import LibraryClient
from pipelines.state.store import State
from tests.migration.apply.small_library import SmallLibrary, refusal
from tests.migration.sample_plans import TYPES, digests, plan_of, row
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Script, ScriptedServer
from tests.state_places import Place

BOOK = {"title": "A book", "identifiers": [{"type": "doi", "value": "10.1000/182"}]}
CREATE, A_FILE, A_COVER = WriteKind.CREATE, WriteKind.ASSET, WriteKind.COVER
DONE, REFUSED, PARKED = WriteState.DONE, WriteState.REFUSED, WriteState.PARKED


class Home:
    """A small library, and what applies plans to it."""

    def __init__(
        self, library: SmallLibrary, client: LibraryClient, journal: Journal, place: tuple[Path, State]
    ) -> None:
        self.library, self.client, self.journal = library, client, journal
        self.folder, self.state = place

    def apply(
        self, rows: Iterable[PlanRow], plan: str = "plan", in_target: Iterable[dict[str, Any]] = ()
    ) -> ApplyResult:
        """Apply a plan of these rows as a process that begins now. `in_target`: what the target had when the plan was made."""
        rows = list(rows)
        counts = {"publications": dict(Counter(str(planned.action) for planned in rows))}
        folder = self.folder / f"{plan}-{len(list(self.folder.glob(f'{plan}-*')))}" / plan
        written = plan_of(folder, rows, in_target, counts=counts)
        step = Step(
            written,
            self.journal,
            self.client,
            TYPES,
            lambda resource: pytest.fail(f"{resource} is listed"),
            open_blob=lambda sha256: BytesIO(CONTENTS[sha256]),
        )
        with closing(Writer(step)) as writer:
            run = ApplyRun(writer)
            run.workers = 1  # rows in their order
            run.settle()
            return run.run()

    def entries(self, source_id: int = 1) -> dict[tuple[WriteKind, int], JournalEntry]:
        """(kind, number of the file) → entry of a record."""
        entries = self.journal.of_record("publications", source_id)
        return {
            (entry.kind, int(entry.part.split("/")[1].removeprefix("at") or 0) if entry.part else 0): entry
            for entry in entries
        }

    def states(self, source_id: int = 1) -> dict[tuple[WriteKind, int], WriteState]:
        """(kind, number of the file) → state."""
        return {key: entry.state for key, entry in self.entries(source_id).items()}


CONTENTS = {hashlib.sha256(content).hexdigest(): content for content in (b"one", b"other", b"the cover")}
ONE, OTHER, PICTURE = CONTENTS


def new(source_id: int = 1, fields: dict[str, Any] = BOOK, files: Iterable[PlannedFile] = ()) -> PlanRow:
    names = [name for name in WRITTEN if name not in REFERENCES]
    return row(source_id, Action.CREATE, payload=fields, expected=digests(fields, names), files=list(files))


def file(number: int, sha256: str = ONE, **values: Any) -> PlannedFile:
    defaults: dict[str, Any] = {
        "name": f"Part {number}",
        "filename": f"{number}.pdf",
        "content_type": "application/pdf",
    }
    size = len(CONTENTS[sha256])
    return PlannedFile(
        kind=ASSET,
        position=number,
        action=FileAction.UPLOAD,
        asset_id=number,
        sha256=sha256,
        **{"size": size, **defaults, **values},
    )


def cover(**values: Any) -> PlannedFile:
    return PlannedFile(
        kind=COVER,
        position=0,
        action=FileAction.UPLOAD,
        sha256=PICTURE,
        **{"filename": "cover.jpg", "content_type": "image/jpeg", "size": len(CONTENTS[PICTURE]), **values},
    )


@pytest.fixture
def library() -> SmallLibrary:
    return SmallLibrary()


@pytest.fixture
def home(
    library: SmallLibrary,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
    clock: ManualClock,
    *,
    tmp_path: Path,
    place: Place,
) -> Iterator[Home]:
    client, state = client_for(serve(library).url), place.state(clock)
    with closing(Journal(state, "https://a", "https://b", clock)) as journal:
        yield Home(library, client, journal, (tmp_path, state))


@pytest.mark.parametrize("answer", [403, 404, 413, 501, 503, "reset", "nothing"])
def test_whatever_a_storage_answers_to_a_file_is_about_that_file(
    home: Home, library: SmallLibrary, answer: int | str
) -> None:
    """It is named; its record, the other files and all other records are written, and a later apply sends the one that is missing."""

    def store(body: bytes) -> Answer:
        if b'filename="2.pdf"' not in body:
            return Answer(b"", status=204)
        if answer == "reset":
            raise ConnectionError
        return Answer(raw=b"") if answer == "nothing" else Answer(b"<html>No</html>", status=int(answer))

    storage, library.storage = library.storage, store
    rows = [new(number, {**BOOK, "title": str(number)}, [cover(), *map(file, (1, 2, 3))]) for number in range(1, 9)]
    applied = home.apply(rows)
    assert (applied.created, applied.files_uploaded, applied.failed) == (8, 24, 8)
    assert all(failure.problem.startswith("The file 2.pdf: POST http") for failure in applied.failures)
    library.storage = storage
    second_apply = home.apply(rows)
    assert (second_apply.created, second_apply.files_uploaded, second_apply.failed, second_apply.complete) == (
        0,
        8,
        0,
        True,
    )
    assert sorted(len(record["assets"]) for record in library.records.values()) == [3] * 8


@pytest.mark.parametrize("order", ["lost", "no id"])
def test_what_a_lost_response_was_about_is_found(home: Home, library: SmallLibrary, order: Any) -> None:
    """The record, which gets its files then, and a file."""
    library.order("POST publications", order)
    library.order("POST assets", order)
    applied = home.apply([new(files=[cover(), file(1), file(2, OTHER)])])
    assert (applied.created, applied.files_uploaded, applied.complete) == (1, 3, True)
    assert (len(library.sent("POST publications")), len(library.sent("POST assets"))) == (1, 2)
    [record] = library.records.values()
    assert record["cover"] is not None
    assert [home.entries()[A_FILE, number].asset_id for number in (1, 2)] == [asset["id"] for asset in record["assets"]]


ENVELOPES: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "data": lambda record: Answer({"data": record}),
    "item, text id": lambda record: Answer({"item": {**record, "id": str(record["id"])}}),
    "own name and meta": lambda record: Answer({"publication": record, "meta": {"id": 1}}, status=201),
    "beside others": lambda record: Answer({"event": {"id": 55}, "publication": {**record, "title": "A book"}}),
    "beside the id of an event": lambda record: Answer({"id": 55, "publication": {**record, "title": "A book"}}),
    "list": lambda record: Answer({"data": [record]}),
    "json api": lambda record: Answer(
        {"data": {"id": str(record["id"]), "type": "x", "attributes": {"title": "A book"}}, "included": [{"id": 3}]}
    ),
    "location": lambda record: Answer(b"", status=201, headers={"Location": f"/api/v3/publications/{record['id']}"}),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_the_record_of_an_answer_may_be_in_an_envelope(home: Home, library: SmallLibrary, name: str) -> None:
    """A success is never sent again: its id is read where it is."""
    library.order("POST publications", lambda: ENVELOPES[name](library.add(dict(BOOK))))
    applied = home.apply([new(files=[file(1)])])
    assert (applied.created, applied.files_uploaded, applied.complete) == (1, 1, True)
    assert (len(library.sent("POST publications")), {*library.records}) == (1, {home.entries()[CREATE, 0].target_id})


@pytest.mark.parametrize("owner", ["the target", "an earlier row"])
def test_the_id_of_another_record_in_an_answer_is_not_that_of_the_new_one(
    home: Home, library: SmallLibrary, owner: str
) -> None:
    """It is looked up, and nothing is written to the other."""
    other_record = library.add({"title": "Another"}) if owner == "the target" else None

    def answer() -> Answer:
        number = other_record["id"] if other_record else home.entries(1)[CREATE, 0].target_id
        return Answer({**library.add(dict(BOOK)), "id": number})

    library.order(
        "POST publications", *([] if other_record else [lambda: Answer(library.add({"title": "The first"}))]), answer
    )
    rows = [*([] if other_record else [new(1, {"title": "The first"})]), new(2, files=[file(1)])]
    applied = home.apply(rows, in_target=[other_record] if other_record else [])
    assert (applied.created, applied.files_uploaded, applied.complete) == (len(rows), 1, True)
    [book] = [record for record in library.records.values() if record["title"] == BOOK["title"]]
    assert (home.entries(2)[CREATE, 0].target_id, len(book["assets"])) == (book["id"], 1)


@pytest.mark.parametrize(
    "answer",
    [
        Answer({"status": "ok"}),
        Answer(b"", status=204),
        Answer({"id": 7, "state": "queued"}, status=202),
        Answer({"title": "A book", "name": "Part 1", "contributor": {"id": 3}}, status=201),
        Answer({"a": {"id": 1}, "b": {"id": 2}}),
        Answer({"event": {"id": 55}, "publication": {"state": "new"}}),
        Answer({"id": 0}),
        Answer(b"OK", status=200, headers={"content-type": "text/plain"}),
        Answer(b'{"id": 1\x1b', status=200),
        Answer(raw=b'HTTP/1.1 201 Created\r\ncontent-length: 50\r\n\r\n{"id": 1'),
    ],
)
@pytest.mark.parametrize("part", ["publications", "assets"])
def test_a_success_that_names_no_record_is_parked_and_never_sent_again(
    home: Home, library: SmallLibrary, answer: Answer, part: str
) -> None:
    """The service shows nothing of it afterwards either: neither this apply nor a later one sends it again."""
    library.order(f"POST {part}", answer)
    for _ in range(2):
        applied = home.apply([new(files=[file(1)])])
        assert (applied.failed, applied.complete) == (1, False)
        assert "answered with success" in applied.failures[0].problem
    assert len(library.sent(f"POST {part}")) == 1
    assert home.states()[(CREATE, 0) if part == "publications" else (A_FILE, 1)] == PARKED


def test_a_record_is_sent_a_few_times_and_then_given_up_until_the_next_apply(home: Home, library: SmallLibrary) -> None:
    library.order("POST publications", *["dropped"] * TRIES)
    applied = home.apply([new()])
    assert (applied.created, applied.failed, applied.complete) == (0, 1, False)
    [failure] = applied.failures
    assert (failure.source_id, failure.resource) == (1, "publications")
    assert "did not create it" in failure.problem
    assert len(library.sent("POST publications")) == TRIES
    assert home.states() == {(CREATE, 0): REFUSED}
    second_apply = home.apply([new()])
    assert (second_apply.created, second_apply.complete, len(library.records)) == (1, True, 1)


def test_a_request_of_a_killed_process_is_waited_for_and_found(home: Home, library: SmallLibrary) -> None:
    """The first look, at the reading of the target, found nothing; the record appears later."""
    row = new(files=[file(1)])
    number = home.journal.intend("plan", "publications", 1, CREATE, wanted=row.expected)
    home.journal.sent(number)
    clock = home.client.clock
    assert isinstance(clock, ManualClock)
    clock.at(clock.monotonic() + home.client.lost_write_seconds - 1, lambda: library.add(dict(BOOK)))
    applied = home.apply([row])
    assert (applied.files_uploaded, applied.complete) == (1, True)
    assert (library.sent("POST publications"), len(library.records)) == ([], 1)


@pytest.mark.parametrize(
    ("candidates", "reason"),
    [
        ([{**BOOK, "title": "The same identifier"}], "which differ from it"),
        ([{"title": "A book", "abstract": "The same title"}], "which differ from it"),
        ([dict(BOOK), dict(BOOK)], "more than were sent"),
    ],
)
def test_what_a_person_has_to_decide_is_never_sent_again(
    home: Home, library: SmallLibrary, candidates: list[dict[str, Any]], reason: str
) -> None:
    """I8: several matches, or one that differs, never become a new record; not in a later apply either."""
    rows = [new(files=[cover(), file(1)])]
    library.order("POST publications", "dropped")
    ids = [library.add(fields)["id"] for fields in candidates]
    for _ in range(2):
        applied = home.apply(rows)
        assert (applied.created, applied.failed, applied.complete) == (0, 1, False)
        assert reason in applied.failures[0].problem
        assert all(str(number) in applied.failures[0].problem for number in ids)
        assert home.states()[CREATE, 0] == PARKED
        assert (len(library.sent("POST publications")), len(library.sent("POST assets"))) == (1, 0)
    for number in ids:
        del library.records[number]
    assert home.apply(rows).complete
    assert len(library.records) == 1


def test_a_refused_record_fails_alone_and_is_tried_by_the_next_apply(home: Home, library: SmallLibrary) -> None:
    library.order("POST publications", refusal(422, "Invalid", "title is too long"))
    applied = home.apply([new(1, files=[file(1)]), new(2, {"title": "Another"})])
    assert (applied.created, applied.failed, applied.files_uploaded) == (1, 1, 0)
    assert "title is too long" in applied.failures[0].problem
    entry = home.entries()[CREATE, 0]
    assert (entry.state, entry.status, "title is too long" in (entry.message or "")) == (REFUSED, 422, True)
    second_apply = home.apply([new(1, files=[file(1)]), new(2, {"title": "Another"})])
    assert (second_apply.created, second_apply.unchanged, second_apply.files_uploaded, second_apply.complete) == (
        1,
        1,
        1,
        True,
    )


def test_a_file_that_cannot_be_uploaded_costs_neither_the_record_nor_other_files(
    home: Home, library: SmallLibrary
) -> None:
    library.order("GET publications/cover/presign", *[refusal(422, "TooLarge", "the cover is too large")] * 2)
    library.order("GET assets/presign", refusal(422, "TooLarge", "the file is too large"))
    applied = home.apply([new(files=[cover(), file(1), file(2, OTHER)])])
    assert (applied.created, applied.files_uploaded, applied.failed) == (1, 1, 1)
    assert "the cover is too large" in applied.failures[0].problem
    assert "the file is too large" in applied.failures[0].problem
    states = {(CREATE, 0): DONE, (A_COVER, 0): REFUSED, (A_FILE, 1): REFUSED, (A_FILE, 2): DONE}
    assert home.states() == states
    second_apply = home.apply([new(files=[cover(), file(1), file(2, OTHER)])])
    assert (second_apply.created, second_apply.files_uploaded, second_apply.failed, len(library.records)) == (
        0,
        2,
        0,
        1,
    )
    assert set(home.states().values()) == {DONE}


def test_a_file_that_was_not_attached_is_sent_again_and_then_given_up(home: Home, library: SmallLibrary) -> None:
    library.order("POST assets", "dropped")
    assert home.apply([new(files=[file(1)])]).complete
    assert len(library.sent("POST assets")) == 2
    library.order("POST assets", *["dropped"] * TRIES)
    applied = home.apply([new(2, {"title": "Another"}, files=[file(1)])])
    assert (applied.created, applied.files_uploaded, applied.failed) == (1, 0, 1)
    assert "did not attach it" in applied.failures[0].problem
    assert home.states(2) == {(CREATE, 0): DONE, (A_FILE, 1): REFUSED}
    assert len(library.sent("POST assets")) == 2 + TRIES


def test_a_file_is_parked_where_the_service_shows_no_files(home: Home, library: SmallLibrary) -> None:
    library.shows_files = False
    library.order("POST assets", "dropped")
    for _ in range(2):
        applied = home.apply([new(files=[file(1)])])
        assert (applied.files_uploaded, applied.failed) == (0, 1)
        assert "does not show the files" in applied.failures[0].problem
        assert home.states()[A_FILE, 1] == PARKED
    assert len(library.sent("POST assets")) == 1


@pytest.mark.parametrize(
    ("code", "is_lost"),
    [
        ("StorageNotFound", True),
        ("storage_not_found", True),
        ("StorageObjectNotFound", True),
        ("RecordNotFound", False),
        ("StorageFull", False),
        ("", False),
    ],
)
def test_a_lost_upload_is_uploaded_anew_a_few_times(
    home: Home, library: SmallLibrary, code: str, *, is_lost: bool
) -> None:
    """A file, and a cover; a refusal's code says whether it is about the upload (service.md#errors, service.md#upload)."""
    lost = refusal(422, code)
    library.order("POST assets", lost)
    library.order("PATCH .*", refusal(404, code))
    record = library.add({"title": "Old"})
    rows = [row(1, Action.PATCH, target_id=record["id"], files=[cover(), file(1)])]
    assert home.apply(rows).complete is is_lost
    assert len({body["file"]["id"] for body in library.sent("POST assets")}) == 1 + is_lost
    assert (record["cover"] is not None) is is_lost
    library.order("POST assets", *[lost] * UPLOADS)
    assert home.apply([new(2, {"title": "Another"}, files=[file(1)])]).failed == 1
    assert len(library.sent("POST assets")) == (2 + UPLOADS if is_lost else 2)


@pytest.mark.parametrize(("status", "code"), [(422, "Invalid"), (404, "StorageNotFound")])
def test_a_record_that_is_refused_with_its_cover_is_sent_without_it(
    home: Home, library: SmallLibrary, status: int, code: str
) -> None:
    """The cover follows alone."""
    library.order("POST publications", refusal(status, code, "cover is not allowed"))
    applied = home.apply([new(files=[cover()])])
    assert (applied.created, applied.files_uploaded, applied.failed, applied.complete) == (1, 1, 0, True)
    assert ["cover" in body for body in library.sent("POST publications")] == [True, False]
    assert [method for method, _, _ in library.writes if method == "PATCH"] == ["PATCH"]


def test_files_alone_are_a_change_of_their_record(home: Home, library: SmallLibrary) -> None:
    record = library.add({"title": "Old"})
    rows = [row(1, Action.PATCH, target_id=record["id"], files=[file(1)])]
    applied = home.apply(rows)
    assert (applied.patched, applied.files_uploaded, applied.failed) == (1, 1, 0)
    assert [path for _, path, _ in library.writes] == ["assets"]


def test_what_fails_temporarily_has_a_second_turn_and_then_another_apply(home: Home, library: SmallLibrary) -> None:
    """Nothing was written, so that no entry stays that would have to be looked up."""
    busy = refusal(429, "TooMany")
    library.order("POST publications", *[busy] * 40)
    applied = home.apply([new()])
    assert (applied.created, applied.failed, len(library.records)) == (1, 0, 1)
    library.order("POST publications", *[busy] * 400)
    applied = home.apply([new(2, {"title": "Another"})])
    assert (applied.created, applied.failed) == (0, 1)
    assert "The next apply of this plan tries it again" in applied.failures[0].problem
    assert home.states(2) == {}
