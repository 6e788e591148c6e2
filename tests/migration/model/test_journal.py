"""The journal of writes answers what was written by whom, so that nothing is written twice and undo takes back no more than that (I8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind, WriteState, is_unsettled, may_have_been_sent
from tests.service.manual_clock import ManualClock
from tests.state_places import Place

CREATE, PATCH, ASSET = WriteKind.CREATE, WriteKind.PATCH, WriteKind.ASSET
OLD, NEW = "https://old", "https://new"
IDS = range(100)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def journal_of(place: Place, clock: ManualClock) -> Iterator[Callable[[str, str], Journal]]:
    """Opens the journal of a source and a target, all in one place."""
    with ExitStack() as stack:

        def open_journal(source: str, target: str) -> Journal:
            journal = Journal(place.state(clock), source, target, clock)
            stack.callback(journal.close)
            return journal

        yield open_journal


@pytest.fixture
def journal(journal_of: Callable[[str, str], Journal]) -> Journal:
    return journal_of(OLD, NEW)


def create(journal: Journal, source_id: int, target_id: int, plan: str = "plan", resource: str = "publications") -> int:
    number = journal.intend(plan, resource, source_id, CREATE)
    journal.done(number, target_id=target_id)
    return number


@pytest.mark.long
def test_records_that_any_plan_of_any_source_wrote_are_known(
    journal: Journal, journal_of: Callable[[str, str], Journal]
) -> None:
    """A record that is not known counts as somebody else's, and could be adopted a second time."""
    create(journal, 1, 10)
    journal.done(journal.intend("plan", "publications", 2, PATCH, target_id=20), target_id=20)
    journal.intend("plan", "publications", 3, PATCH, target_id=30)
    create(journal_of("https://another", NEW), 1, 40)
    assert journal.known_ids("publications", IDS) == {10, 20, 30, 40}
    assert journal.known_ids("publications", [10, 11]) == {10}
    assert journal.known_ids("publications", []) == set()
    assert journal.known_ids("publications", [*range(100_000, 170_000), 10]) == {10}

    create(journal_of(OLD, "https://elsewhere"), 4, 50)
    create(journal, 5, 60, resource="users")
    journal.done(journal.intend("plan", "publications", 6, ASSET), target_id=70, asset_id=1)
    journal.refused(journal.intend("plan", "publications", 7, PATCH, target_id=80), "no")
    journal.undone(create(journal, 8, 90))
    assert journal.known_ids("publications", IDS) == {10, 20, 30, 40}


def test_a_repetition_takes_the_place_of_what_was_written_before(journal: Journal) -> None:
    key = ("plan", "publications", 1, PATCH)
    number = journal.intend(*key, target_id=5, wanted={"title": "1"})
    journal.refused(number, "no", 422)
    assert journal.intend(*key, target_id=6, wanted={"title": "2"}) == number
    [entry] = journal.of_record("publications", 1)
    assert (entry.target_id, entry.wanted) == (6, {"title": "2"})
    assert (entry.state, entry.status, entry.message, entry.ended_at) == (WriteState.INTENDED, None, None, None)
    journal.done(number, target_id=6, held={"title": "2"})
    journal.undone(number)
    journal.intend(*key, target_id=6)
    [entry] = journal.of_record("publications", 1)
    assert entry.held == {}


def test_an_intent_is_withdrawn_only_while_it_is_one(journal: Journal) -> None:
    key = ("plan", "publications", 1, CREATE)
    number = journal.intend(*key)
    journal.withdraw(number)
    assert journal.of_record("publications", 1) == []
    for settle in (lambda intent: journal.done(intent, target_id=1), lambda intent: journal.parked(intent, "unknown")):
        number = journal.intend(*key)
        settle(number)
        journal.withdraw(number)
        assert [entry.number for entry in journal.of_record("publications", 1)] == [number]


def test_whether_an_entry_is_looked_up_before_it_is_sent(journal: Journal) -> None:
    def unsettled() -> tuple[bool, bool]:
        [entry] = journal.of_record("publications", 1)
        return may_have_been_sent(entry), is_unsettled(entry)

    key = ("plan", "publications", 1, CREATE)
    number = journal.intend(*key)
    assert unsettled() == (False, False), "no request left"
    journal.sent(number)
    assert unsettled() == (True, True)
    journal.answered(number)
    journal.refused(number, "no")
    assert unsettled() == (True, False)
    journal.intend(*key)
    journal.parked(number, "unknown")
    assert unsettled() == (True, True)
    journal.sent(number)
    journal.intend(*key)
    assert unsettled() == (True, True), "the first request may have had an effect"
    journal.absent(number)
    assert unsettled() == (False, False)
    journal.done(number, target_id=5)
    assert unsettled() == (True, False)


@pytest.mark.long
def test_a_plan_of_more_entries_than_one_reading_has_all_of_them_once(journal: Journal) -> None:
    numbers = [journal.intend("plan", "publications", source_id, CREATE) for source_id in range(1003)]
    journal.intend("another", "publications", 1, CREATE)
    journal.refused(numbers[1001], "no")
    assert [entry.number for entry in journal.of_plan("plan")] == numbers
    assert [entry.number for entry in journal.of_plan("plan", WriteState.REFUSED)] == [numbers[1001]]
    assert journal.counts("plan") == {(CREATE, WriteState.INTENDED): 1002, (CREATE, WriteState.REFUSED): 1}
