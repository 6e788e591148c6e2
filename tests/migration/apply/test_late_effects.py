"""I8: a write that takes effect after its connection broke, after a proxy answered for the service, or after its process was killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pipelines.errors import StopError
from pipelines.migration.apply.late_effects import wait_for_unanswered
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.model.step import Request
from pipelines.service.client import LOST_WRITE_SHARE, READ_SECONDS, LibraryClient, Waiting
from pipelines.store.snapshots.snapshots import Snapshot
from tests.cli.command import PATIENCE
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import READ_SECONDS as READ_IN_TESTS
from tests.migration.library_pair import LibraryPair
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received, Script, ScriptedServer
from tests.state_places import Place

WITHIN = READ_IN_TESTS / 2
"""A delay below the read timeout, by as much as a busy machine needs."""

LOST_WRITE_SECONDS = LOST_WRITE_SHARE * READ_SECONDS


@pytest.mark.long
def test_what_comes_later_is_named_by_verify_and_by_the_next_plan(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Three records are absent when they are settled, and are written in the second turn; then the first requests take effect, too."""
    plan = pair.plan(snapshot)
    order: dict[str, Any] = {"answer": "status", "status": 502, "behind": RECORDS}
    pair.sandbox.fault("late", pair.target, method="POST", path="/publications$", times=3, **order)
    applied = pair.apply(plan)
    deadline = time.monotonic() + PATIENCE
    records: dict[Any, Any] = {}
    while len(records) < RECORDS + 3:
        assert time.monotonic() < deadline
        records = {record["id"]: record for record in pair.publications()}
    assert (len(records), applied.created, applied.failed) == (RECORDS + 3, RECORDS, 0)
    findings = [finding for finding in pair.verify(plan).findings if finding.code == "duplicated"]
    duplicates = sorted((finding.source_id, [finding.target_id]) for finding in findings)
    twins = pair.plan(snapshot).facts.twins or []
    assert len(duplicates) == 3
    assert sorted((twin.source_id, twin.twins) for twin in twins) == duplicates
    assert all(records[twin.target_id]["title"] == records[twin.twins[0]]["title"] for twin in twins)
    assert pair.undo(plan, really=True).left == 0
    left = [record["id"] for record in pair.publications()]
    assert left == sorted(twin.twins[0] for twin in twins), "I8: only what the journal says we made is deleted"
    for number in left:
        pair.call("DELETE", f"publications/{number}")
    assert pair.plan(snapshot).facts.twins == []


class Harness:
    """A journal and a client of a scripted server, on a clock of the test."""

    def __init__(self, journal: Journal, client: LibraryClient, clock: ManualClock, waits: list[Waiting]) -> None:
        self.journal, self.client, self.clock, self.waits = journal, client, clock, waits

    def send(self) -> int:
        """A request leaves; returns the number of its entry."""
        number = self.journal.intend("plan", "publications", 1, WriteKind.CREATE)
        self.journal.sent(number)
        return number

    def waited(self) -> float:
        """The seconds that another process, which begins now, waits for it."""
        self.waits.clear()
        wait_for_unanswered(self.journal, self.client)
        return sum(wait.seconds for wait in self.waits)


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
    """A clock whose time of day a person sets."""

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
    harness.clock.sleep(20.5)
    assert harness.waited() == LOST_WRITE_SECONDS - 20.5
    assert harness.waited() == 0


@pytest.mark.parametrize("set_by", [-3600.0, -10.0])
def test_a_clock_that_was_set_back_neither_shortens_the_wait_nor_makes_it_endless(
    harness: Harness, set_by: float
) -> None:
    harness.send()
    harness.clock.sleep(30)
    assert isinstance(harness.clock, SetClock)
    harness.clock.set_by = set_by
    assert LOST_WRITE_SECONDS - 30 <= harness.waited() <= LOST_WRITE_SECONDS


@pytest.mark.parametrize("undone", [False, True])
def test_every_command_waits_for_requests_of_ended_processes_and_says_why(harness: Harness, *, undone: bool) -> None:
    """One that reads the target meanwhile would not see the effect: of a create, or of a DELETE that an undo sent."""
    number = harness.send()
    if undone:
        harness.journal.done(number, target_id=5)
        harness.journal.sent(number)
    assert harness.waited() == LOST_WRITE_SECONDS
    assert [wait.reason for wait in harness.waits] == ["a request without a response may still take effect"]
    harness.journal.done(number, target_id=5)
    assert harness.waited() == 0


@pytest.mark.long
def test_an_apply_after_a_stopped_undo_of_the_same_plan_is_refused(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The journal calls the record done, and a late DELETE would take it away."""
    plan = pair.plan(snapshot)
    pair.apply(plan)
    with pair.migration() as migration, migration.journal_of(plan) as journal:
        entry = next(journal.of_plan(plan.name, WriteState.DONE))
        journal.sent(entry.number)
    with pytest.raises(StopError, match=r"undo .* again"):
        pair.apply(plan)
    assert pair.undo(plan, really=True).left == 0
    assert pair.apply(plan).complete


@pytest.mark.long
def test_a_late_creation_of_another_plan_is_seen_by_the_next_one(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Two plans of the same records: the second one waits for what the first one left under way."""
    first, second = pair.plan(snapshot), pair.plan(snapshot)
    row = next(first.rows())
    order = {"answer": "reset", "least_seconds": WITHIN, "seconds": WITHIN}
    pair.sandbox.fault("late", pair.target, method="POST", path="/publications$", **order)
    with pair.migration() as migration, migration.at_target(first) as step:
        number = step.intend(row, WriteKind.CREATE)
        with pytest.raises(Exception, match="may have had its effect"):
            step.send(Request("POST", row.resource, row.payload), number)
    with pytest.raises(StopError, match="seems to be there now"):
        pair.apply(second)
    assert len(pair.publications()) == 1
