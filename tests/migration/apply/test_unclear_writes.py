"""Creates with a lost response are settled at the end of their resource, also where the service changes what it stores (I8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from pipelines.migration.apply.references import References
from pipelines.migration.apply.unclear_writes import UnclearWrites
from pipelines.migration.model.actions import Action
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState, is_unsettled
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.step import Step
from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.tables.publication_fields import WRITTEN
from pipelines.service.client import LibraryClient
from tests.migration.sample_plans import TYPES, digests, plan_of, row
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received, Script, ScriptedServer
from tests.state_places import Place

SENT = {"title": " A  title\n"}
COPY = {"publication_id": 7, "barcode": "B 1", "note": "Worn"}

Settle = Callable[..., list[JournalEntry]]


class Listed:
    """A whole list of the target."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.records = lambda: iter(records)


@pytest.fixture
def settle(
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
    place: Place,
    tmp_path: Path,
) -> Iterator[Settle]:
    """Settles creates of these payloads, in a target with these records; returns their entries."""
    clock = ManualClock()
    with closing(Journal(place.state(clock), "https://a", "https://b", clock)) as journal:

        def run(
            payloads: list[dict[str, Any]],
            ends: list[dict[str, Any]],
            whole_list: list[dict[str, Any]] | None = None,
            *,
            is_counted: bool = True,
        ) -> list[JournalEntry]:
            resource = "publications" if "title" in payloads[0] else "hard_copies"
            rows = [new(resource, number, payload) for number, payload in enumerate(payloads)]
            for planned in rows:
                key = ("plan", resource, planned.source_id, WriteKind.CREATE)
                journal.sent(journal.intend(*key, wanted=planned.expected))

            def script(_request: Received) -> Answer:
                return Answer({"records": ends}, headers={"x-total": str(len(ends))} if is_counted else {})

            def listing(_resource: str) -> AbstractContextManager[RecordListing]:
                assert whole_list is not None, "a list in order is not read whole"
                return nullcontext(cast(RecordListing, Listed(whole_list)))

            client, plan = client_for(serve(script).url, clock=clock), plan_of(tmp_path / "plan", rows)
            step = Step(plan, journal, client, TYPES, listing, open_blob=pytest.fail)
            UnclearWrites(step, References(step), {}).settle(resource)
            return [*journal.of_plan("plan")]

        yield run


def new(resource: str, source_id: int, payload: dict[str, Any]) -> PlanRow:
    expected = digests(payload, WRITTEN if resource == "publications" else None, resource=resource)
    return row(source_id, Action.CREATE, resource=resource, payload=payload, expected=expected)


@pytest.mark.parametrize(
    ("sent", "in_target", "state"),
    [
        (SENT, {**SENT}, WriteState.DONE),
        (SENT, {"title": "A title", "publishable_type": "Book"}, WriteState.DONE),
        (SENT, {"title": "A title.", "abstract": "Of another one?"}, WriteState.PARKED),
        (SENT, {"title": "Another title"}, WriteState.INTENDED),
        (COPY, {**COPY, "status": None}, WriteState.DONE),
        (COPY, {**COPY, "barcode": "b  1", "note": "As new"}, WriteState.PARKED),
        (COPY, {**COPY, "barcode": "B 2"}, WriteState.INTENDED),
        (COPY, {"note": "Worn"}, WriteState.INTENDED),
        ({"note": "Torn"}, {"note": "Worn"}, WriteState.INTENDED),
    ],
)
@pytest.mark.parametrize("number", [5, "5"])
def test_a_record_is_taken_where_it_is_the_one_that_was_sent(
    settle: Settle, sent: dict[str, Any], in_target: dict[str, Any], state: WriteState, number: int | str
) -> None:
    """Where it differs but may be it, a person decides; else it is absent, and is sent again. An id may be a text."""
    [entry] = settle([sent], [{"id": number, **in_target}])
    assert (entry.state, entry.target_id) == (state, 5 if state == WriteState.DONE else None)
    assert is_unsettled(entry) == (state == WriteState.PARKED)


def test_of_equal_records_each_create_takes_another_one(settle: Settle) -> None:
    entries = settle([COPY, COPY, COPY], [{"id": number, **COPY} for number in (7, 5)])
    assert [entry.target_id for entry in entries] == [5, 7, None]
    assert [entry.state for entry in entries] == [WriteState.DONE, WriteState.DONE, WriteState.INTENDED]


@pytest.mark.parametrize(("ids", "is_counted"), [((4, 9, 2), True), ((2, 4, 9), False)])
@pytest.mark.parametrize("sent", [SENT, COPY])
def test_a_list_in_no_order_or_without_an_end_is_read_whole(
    settle: Settle, sent: dict[str, Any], ids: tuple[int, ...], *, is_counted: bool
) -> None:
    """Nothing says where in it a new record is."""
    ends = [{"id": number, "title": "x", "barcode": "x"} for number in ids]
    [entry] = settle([sent], ends, [*ends, {"id": 5, **sent}], is_counted=is_counted)
    assert entry.target_id == 5
