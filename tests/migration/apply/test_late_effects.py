"""I8: a write that takes effect after its connection broke, after a proxy answered for the service, or after its process was killed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pipelines.errors import StopError
from pipelines.migration.apply.late_effects import LateEffects, wait_for_others
from pipelines.migration.apply.run import as_json
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState
from pipelines.service.client import EFFECT_SHARE, READ_SECONDS, LibraryClient, Waiting
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration import late_chaos
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import READ_SECONDS as SCALED
from tests.migration.library_pair import LibraryPair
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received, Script, ScriptedServer
from tests.state_places import Place

WITHIN = 0.9 * SCALED
"""A delay below the read timeout."""

EFFECT_SECONDS = EFFECT_SHARE * READ_SECONDS


def posts(pair: LibraryPair, path: str) -> int:
    return [(method, one.endswith(path)) for method, one in pair.writes()].count(("POST", True))


def late(pair: LibraryPair, path: str, answer: str, times: int = 3) -> None:
    """The next POSTs to a path take effect within the read timeout, and are answered before that."""
    order: dict[str, Any] = {"answer": answer, "status": 502, "least_seconds": WITHIN, "seconds": WITHIN}
    pair.sandbox.fault("late", pair.target, method="POST", path=path, times=times, **order)


def too_late(pair: LibraryPair, path: str, answer: str, posts: int) -> None:
    """The next of so many POSTs to a path takes effect right after its repetition, the last of them."""
    pair.sandbox.fault("late", pair.target, method="POST", path=path, times=1, answer=answer, status=502, behind=posts)


@pytest.mark.long
@pytest.mark.parametrize("answer", ["reset", "status"])
@pytest.mark.parametrize("path", ["/publications$", "/assets$"])
def test_what_takes_effect_within_the_read_timeout_is_sent_once(
    pair: LibraryPair, snapshot: Snapshot, path: str, answer: str
) -> None:
    """Newer records of our own prove nothing: the rest of the plan goes on, and the record is looked up later."""
    plan = pair.plan(snapshot)
    late(pair, path, answer)
    applied = pair.apply(plan).applied
    assert (applied.complete, applied.created, applied.twins) == (True, RECORDS, [])
    files = plan.facts.files
    assert posts(pair, path.strip("$")) == (RECORDS if "publications" in path else files.upload - files.covers)
    records = pair.publications()
    assert (len(records), sum(len(record["assets"]) for record in records)) == (RECORDS, files.upload - files.covers)


@pytest.mark.long
def test_a_twin_is_named_by_apply_by_the_next_one_and_by_the_next_plan(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Effects later than apply waits for: the record is sent again, and the last look finds it twice. It is never called unchanged."""
    plan = pair.plan(snapshot)
    too_late(pair, "/publications$", "status", RECORDS)
    applied = pair.apply(plan).applied
    records = pair.publications()
    assert (len(records), applied.created, applied.failed, applied.complete) == (RECORDS + 1, RECORDS, 0, False)
    [twin] = applied.twins
    titles = {record["id"]: record["title"] for record in records}
    assert titles[twin.target_id] == titles[twin.twins[0]]
    assert as_json(applied, 0)["twins"] == [
        {
            "resource": "publications",
            "source_id": twin.source_id,
            "target_id": twin.target_id,
            "twins": twin.twins,
            "file": "",
        }
    ]
    again = pair.apply(plan).applied
    assert (again.twins, again.unchanged) == ([twin], RECORDS - 1)
    later = pair.plan(snapshot)
    assert (later.facts.twins, [str(twin)]) == (
        [twin],
        [note for note in later.facts.notes if "more than once" in note],
    )
    pair.call("DELETE", f"publications/{twin.twins[0]}")
    assert (pair.apply(plan).applied.complete, pair.plan(snapshot).facts.twins or []) == (True, [])


def test_a_file_that_was_attached_twice_is_named(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = pair.plan(snapshot)
    assets = plan.facts.files.upload - plan.facts.files.covers
    too_late(pair, "/assets$", "reset", assets)
    applied = pair.apply(plan).applied
    assert sum(len(record["assets"]) for record in pair.publications()) == assets + 1
    [twin] = applied.twins
    assert (bool(twin.file), applied.complete) == (True, False)
    assert pair.plan(snapshot).facts.twins == [twin]
    pair.call("DELETE", f"assets/{twin.twins[0]}")
    assert pair.apply(plan).applied.complete


def test_an_undo_names_the_twin_that_it_leaves(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I8: only what the journal says we made is deleted."""
    plan = pair.plan(snapshot)
    too_late(pair, "/publications$", "status", RECORDS)
    [twin] = pair.apply(plan).applied.twins
    with pair.migration() as migration:
        undone = migration.undo(plan, really=True)
    assert [record["id"] for record in pair.publications()] == twin.twins
    assert ([left.target_id for left in undone.findings], undone.left) == (twin.twins, 1)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options", [["--records", "40"], ["--everything", "--undo"]], ids=["publications", "all, and undo"]
)
def test_nothing_is_twice_where_effects_are_late_and_processes_are_killed(options: list[str]) -> None:
    [figures] = late_chaos.main(["--seeds", "1", "--first", "3", *options])
    assert (figures.lost, figures.twice, figures.twins) == (0, 0, 0)
    assert figures.kills >= 1


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_twin_is_named_where_effects_come_after_the_read_timeout() -> None:
    [figures] = late_chaos.main(["--seeds", "1", "--beyond", "--records", "40"])
    assert (figures.lost, figures.unnamed, figures.twice) == (0, 0, figures.twins)
    assert figures.twins >= 1


class Harness:
    """A journal and a client of a scripted server, on a clock of the test."""

    def __init__(self, journal: Journal, client: LibraryClient, clock: ManualClock, waits: list[Waiting]) -> None:
        self.journal, self.client, self.clock, self.waits = journal, client, clock, waits

    def send(self, plan: str = "plan", source_id: int = 1) -> JournalEntry:
        """A request leaves."""
        self.journal.sent(self.journal.intend(plan, "publications", source_id, WriteKind.CREATE))
        return self.entry(source_id)

    def entry(self, source_id: int = 1) -> JournalEntry:
        """The newest entry of a record."""
        return self.journal.of_record("publications", source_id)[-1]

    def seconds_left(self) -> float:
        """What another process, which begins now, waits for the entry."""
        late = LateEffects(self.client)
        return late.due(self.entry()) - self.clock.monotonic()


@pytest.fixture
def harness(
    place: Place,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
    clock: ManualClock,
) -> Harness:
    def script(_request: Received) -> Answer:
        return Answer({})

    waits: list[Waiting] = []
    client = client_for(serve(script).url, on_wait=waits.append)
    return Harness(Journal(place.state(clock), "https://a", "https://b", clock), client, clock, waits)


class SetClock(ManualClock):
    """A clock whose time of day a person sets, and whose machine may be started anew."""

    set_by = 0.0

    def now(self) -> Any:
        """Return the time of day as it was set."""
        return super().now() + timedelta(seconds=self.set_by)


@pytest.fixture
def clock() -> ManualClock:
    return SetClock()


def test_the_read_timeout_counts_from_the_sending(harness: Harness) -> None:
    harness.journal.intend("plan", "publications", 1, WriteKind.CREATE)
    harness.clock.sleep(50)  # the request waits for the budget
    harness.send()
    harness.clock.sleep(20)
    assert harness.seconds_left() == EFFECT_SECONDS - 20
    harness.clock.sleep(3600)
    assert harness.seconds_left() <= 0


@pytest.mark.parametrize("set_by", [-3600.0, 3600.0, -10.0])
def test_a_clock_that_was_set_neither_shortens_the_wait_nor_makes_it_endless(harness: Harness, set_by: float) -> None:
    harness.send()
    harness.clock.sleep(30)
    assert isinstance(harness.clock, SetClock)
    harness.clock.set_by = set_by
    assert EFFECT_SECONDS - 30 <= harness.seconds_left() <= EFFECT_SECONDS
    late = LateEffects(harness.client)
    late.wait_for([harness.entry()])
    assert late.is_over(harness.entry())
    assert sum(wait.seconds for wait in harness.waits) <= EFFECT_SECONDS


def test_a_machine_that_was_started_anew_counts_by_the_time_of_day(harness: Harness) -> None:
    harness.send()
    assert isinstance(harness.clock, SetClock)
    harness.clock._now -= 900
    harness.clock.set_by = 940.0
    assert harness.seconds_left() == EFFECT_SECONDS - 40


def test_other_commands_wait_for_requests_of_ended_processes_and_say_why(harness: Harness) -> None:
    """A plan, a verification or an undo that reads the target meanwhile would not see the effect."""
    harness.send()
    wait_for_others(harness.journal, harness.client, "plan")
    assert harness.waits == [], "an apply of the same plan looks its own creations up"
    wait_for_others(harness.journal, harness.client)
    assert [wait.reason for wait in harness.waits] == ["a request without a response may still take effect"]
    harness.journal.done(harness.entry().number, target_id=5)
    harness.waits.clear()
    wait_for_others(harness.journal, harness.client)
    assert harness.waits == []


def test_the_last_second_is_waited_for_too(harness: Harness) -> None:
    harness.send()
    harness.clock.sleep(EFFECT_SECONDS - 0.5)
    late = LateEffects(harness.client)
    assert not late.is_over(harness.entry())
    late.wait_for([harness.entry()])
    assert late.is_over(harness.entry())
    assert [wait.seconds for wait in harness.waits] == [0.5]


def test_an_apply_waits_for_what_an_undo_of_its_own_plan_sent(harness: Harness) -> None:
    """Nothing looks up a DELETE that may still take away what the journal calls done."""
    entry = harness.send()
    harness.journal.done(entry.number, target_id=5)
    harness.journal.sent(entry.number)
    wait_for_others(harness.journal, harness.client, "plan")
    assert harness.seconds_left() <= 0
    assert len(harness.waits) == 1


def test_only_what_was_sent_without_an_answer_is_repeated(harness: Harness) -> None:
    """An intent that never left is no reason for a last look, and neither is one that was answered."""
    journal, key = harness.journal, ("plan", "publications", 1, WriteKind.CREATE)
    number = journal.intend(*key)
    journal.intend(*key)
    assert harness.entry().repeated == 0
    journal.sent(number)
    journal.answered(number)
    journal.intend(*key)
    assert harness.entry().repeated == 0
    journal.sent(number)
    journal.intend(*key)
    assert harness.entry().repeated == 1
    journal.withdraw(number)
    assert harness.entry().repeated == 1, "it stays: the first request may have had an effect"
    journal.refused(number, "no")
    assert [entry.number for entry in journal.repeated("plan")] == [number]
    journal.looked_at(number)
    assert (journal.repeated("plan"), len(journal.repeated(looked_at=True))) == ([], 1)


@pytest.mark.long
def test_an_apply_after_a_stopped_undo_of_the_same_plan_is_refused(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The journal calls the record done, and a late DELETE would take it away."""
    plan = pair.plan(snapshot)
    pair.apply(plan)
    with pair.migration() as migration, migration.session.journal_of(plan) as journal:
        entry = next(journal.of_plan(plan.name, WriteState.DONE))
        journal.sent(entry.number)
    with pytest.raises(StopError, match=r"undo .* again"):
        pair.apply(plan)
    with pair.migration() as migration:
        assert migration.undo(plan, really=True).left == 0
    assert pair.apply(plan).applied.complete


@pytest.mark.long
def test_a_late_creation_of_another_plan_is_seen_by_the_next_one(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Two plans of the same records: the second one waits for what the first one left under way."""
    first, second = pair.plan(snapshot), pair.plan(snapshot)
    row = next(first.rows())
    late(pair, "/publications$", "reset", times=1)
    with pair.migration() as migration, migration.session.at_target(first) as (journal, client):
        number = journal.intend(first.name, row.resource, row.source_id, WriteKind.CREATE)
        with pytest.raises(Exception, match="may have had its effect"):
            client.write("POST", row.resource, row.payload, on_leave=lambda: journal.sent(number))
    with pytest.raises(StopError, match="seems to be there now"):
        pair.apply(second)
    assert len(pair.publications()) == 1
