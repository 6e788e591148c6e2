"""The journal of writes answers what was written by whom, so that nothing is written twice and undo takes back no more than that (I8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind, WriteState, is_unsettled, may_have_been_sent
from tests.service.manual_clock import ManualClock
from tests.state_places import Place

CREATE, PATCH, ASSET, COVER = WriteKind.CREATE, WriteKind.PATCH, WriteKind.ASSET, WriteKind.COVER
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


@pytest.mark.parametrize("resource", ["publications", "users"])
def test_who_reads_waits_for_nobody_who_writes(
    journal: Journal, place: Place, clock: ManualClock, resource: str
) -> None:
    create(journal, 1, 10, resource=resource)
    with closing(place.state(clock).open(clock)) as other, other.transaction() as db:
        db.execute("UPDATE migration_writes SET target_id = 11", ())
        assert journal.target_id_of(resource, 1) == 10
        assert journal.known_ids(resource, IDS) == {10}
        assert [entry.target_id for entry in journal.of_record(resource, 1)] == [10]
        assert journal.done_writes("plan", resource, [1]) == {1: {(CREATE, "")}}
        assert journal.counts("plan") == {(CREATE, WriteState.DONE): 1}


def test_only_what_was_created_before_a_moment_is_older(journal: Journal, clock: ManualClock) -> None:
    """A lookup reads a list back to a record that is certainly older than the request."""
    create(journal, 1, 10)
    clock.sleep(1)
    number = journal.intend("plan", "publications", 2, CREATE)
    begun = journal.of_record("publications", 2)[0].begun_at
    journal.done(number, target_id=20)
    clock.sleep(1)
    create(journal, 3, 30)
    journal.done(journal.intend("plan", "publications", 4, PATCH), target_id=40)
    assert journal.created_before("publications", IDS, begun) == {10}
    assert journal.created_before("publications", [20, 30], begun) == set()
    assert journal.created_before("users", IDS, begun) == set()


def test_a_reference_leads_to_the_record_that_was_written_last(
    journal: Journal, journal_of: Callable[[str, str], Journal]
) -> None:
    create(journal, 1, 10, "first")
    last = create(journal, 1, 20, "second")
    journal.done(journal.intend("third", "publications", 1, ASSET), target_id=99, asset_id=5)
    journal.intend("third", "publications", 1, PATCH, target_id=98)
    create(journal, 1, 97, resource="users")
    create(journal, 2, 96)
    create(journal_of("https://another", NEW), 1, 95)
    create(journal_of(OLD, "https://elsewhere"), 1, 94)
    assert journal.target_id_of("publications", 1) == 20
    journal.undone(last)
    assert journal.target_id_of("publications", 1) == 10
    assert journal.target_id_of("publications", 3) is None


def test_a_repetition_keeps_the_values_from_before_the_first_request(journal: Journal) -> None:
    """Undo restores them; what the target has after the first request is our own value."""
    key = ("plan", "publications", 1, PATCH)
    number = journal.intend(*key, target_id=5, before={"title": "Theirs"}, content="c1", wanted={"title": "1"})
    journal.refused(number, "no", 422)
    assert journal.intend(*key, target_id=6, before={"title": "Ours"}, content="c2", wanted={"title": "2"}) == number
    [entry] = journal.of_record("publications", 1)
    assert (entry.before, entry.target_id, entry.content, entry.wanted) == (
        {"title": "Theirs"},
        6,
        "c2",
        {"title": "2"},
    )
    assert (entry.state, entry.status, entry.message, entry.ended_at) == (WriteState.INTENDED, None, None, None)
    journal.done(number, target_id=6, held={"title": "2"})
    journal.undone(number)
    journal.intend(*key, target_id=6, before={"title": "Theirs, later"})
    [entry] = journal.of_record("publications", 1)
    assert (entry.before, entry.held) == ({"title": "Theirs, later"}, {})


def test_a_response_ends_the_doubt_about_a_request_and_parking_does_not(journal: Journal) -> None:
    numbers = [journal.intend("plan", "publications", source_id, CREATE) for source_id in range(6)]
    assert journal.unanswered() == []
    journal.sent(*numbers)
    assert [entry.number for entry in journal.unanswered()] == numbers
    answered, done, refused, parked, undone, left = numbers
    journal.answered(answered)
    journal.done(done, target_id=1)
    journal.refused(refused, "no")
    journal.parked(parked, "unknown")
    journal.undone(undone)
    assert [entry.number for entry in journal.unanswered()] == [parked, left]
    [entry] = journal.of_record("publications", 3)
    assert (entry.state, entry.message, entry.sent_at is None) == (WriteState.PARKED, "unknown", False)


def test_an_intent_is_withdrawn_only_while_it_is_one(journal: Journal) -> None:
    key = ("plan", "publications", 1, CREATE)
    number = journal.intend(*key)
    journal.withdraw(number)
    assert journal.of_record("publications", 1) == []
    for settle in (lambda one: journal.done(one, target_id=1), lambda one: journal.parked(one, "unknown")):
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


def test_a_record_is_what_all_plans_together_wrote_of_it(journal: Journal) -> None:
    """Fields of the last creation and of the changes after it; a later plan compares with them what people changed."""
    first = journal.intend("a", "publications", 1, CREATE, wanted={"title": "1", "abstract": "2"})
    journal.done(first, target_id=10, held={"title": "1", "abstract": "3"})
    change = journal.intend("b", "publications", 1, PATCH, target_id=10, wanted={"title": "4"})
    journal.done(change, target_id=10, held={"title": "5"})
    create(journal, 2, 20)
    journal.done(journal.intend("a", "publications", 3, PATCH, wanted={"title": "6"}), target_id=30)
    journal.done(journal.intend("b", "publications", 3, PATCH, wanted={"abstract": "7"}), target_id=31)
    journal.refused(journal.intend("a", "publications", 4, CREATE, wanted={"title": "8"}), "no")
    found = [(one.source_id, one.target_id, one.wanted, one.held) for one in journal.written("publications")]
    assert found == [
        (1, 10, {"title": "4", "abstract": "2"}, {"title": "5", "abstract": "3"}),
        (2, 20, {}, {}),
        (3, 31, {"abstract": "7"}, {}),
    ]
    again = journal.intend("c", "publications", 1, CREATE, wanted={"title": "9"})
    journal.done(again, target_id=10, held={"title": "9"})
    assert next(journal.written("publications")).wanted == {"title": "9"}, "it was created anew"


@pytest.mark.long
def test_a_plan_of_more_entries_than_one_reading_has_all_of_them_once(journal: Journal) -> None:
    numbers = [journal.intend("plan", "publications", source_id, CREATE) for source_id in range(1003)]
    journal.intend("another", "publications", 1, CREATE)
    journal.refused(numbers[1001], "no")
    assert [entry.number for entry in journal.of_plan("plan")] == numbers
    assert [entry.number for entry in journal.of_plan("plan", WriteState.REFUSED)] == [numbers[1001]]
    assert journal.counts("plan") == {(CREATE, WriteState.INTENDED): 1002, (CREATE, WriteState.REFUSED): 1}


def test_what_plans_created_is_told_from_what_they_changed(
    journal: Journal, journal_of: Callable[[str, str], Journal]
) -> None:
    create(journal, 1, 10)
    journal.done(journal.intend("plan", "publications", 1, ASSET, "a"), target_id=10, asset_id=7)
    create(journal_of("https://another", NEW), 1, 20)
    journal.done(journal.intend("plan", "publications", 2, PATCH), target_id=30)
    journal.done(journal.intend("plan", "publications", 2, COVER, "c"), target_id=30)
    journal.undone(create(journal, 3, 40))
    create(journal, 4, 50, resource="users")
    create(journal_of(OLD, "https://elsewhere"), 5, 60)
    assert sorted(journal.created_records("publications"), key=str) == [(10, 7), (10, None), (20, None)]


def test_the_records_with_the_newest_files_come_first(journal: Journal) -> None:
    for number in range(1, 6):
        entry = journal.intend("plan", "publications", number, ASSET)
        if number != 5:
            journal.done(entry, target_id=number * 10, asset_id=number)
    create(journal, 6, 60)
    assert journal.ids_with_new_files() == [40, 30, 20]


def test_the_last_change_of_a_plan_is_when_it_was_begun_or_settled_last(journal: Journal, clock: ManualClock) -> None:
    assert journal.last_change("plan") == ""
    first = journal.intend("plan", "publications", 1, CREATE)
    clock.sleep(5)
    journal.intend("plan", "publications", 2, CREATE)
    assert journal.last_change("plan") == journal.of_record("publications", 2)[0].begun_at
    clock.sleep(5)
    journal.done(first, target_id=1)
    assert journal.last_change("plan") == journal.of_record("publications", 1)[0].ended_at
    clock.sleep(5)
    journal.intend("another", "publications", 1, PATCH)
    assert journal.last_change("plan") == journal.of_record("publications", 1)[0].ended_at
