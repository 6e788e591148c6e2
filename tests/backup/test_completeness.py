"""The verdict on a listing: complete only where every record is in it once (I4)."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.backup.completeness import prove_listing
from pipelines.service.listing.listing_facts import ListingFacts, Page
from pipelines.store.snapshots.captures import IdCounts, ResourceFacts


def verdict(
    listing: dict[str, Any] | None = None,
    ids: dict[str, Any] | None = None,
    *,
    walks: int = 1,
) -> ResourceFacts:
    """The verdict on a quiet listing of 100 records, but for these figures."""
    quiet = {"endpoint": "publications", "pages": 2, "first_total": 100, "last_total": 100, "totals_seen": 1}
    usual = {"rows": 100, "distinct": 100, "without_id": 0, "duplicates": []}
    return prove_listing(
        ListingFacts(**{**quiet, **(listing or {})}),
        IdCounts(**{**usual, **(ids or {})}),
        walks=walks,
    )


def test_a_quiet_listing_with_as_many_records_as_announced_is_complete() -> None:
    facts = verdict({"requests": 3, "seconds": 1.23456, "again": 1, "resumed": 1})
    assert (facts.complete, facts.problems, facts.notes) == (True, [], [])
    assert (facts.endpoint, facts.records, facts.distinct_ids, facts.x_total) == ("publications", 100, 100, 100)
    assert (facts.pages, facts.requests, facts.seconds, facts.read_again, facts.resumed) == (2, 3, 1.235, 1, 1)


@pytest.mark.parametrize("distinct", [99, 101])
def test_another_number_than_announced_is_partial(distinct: int) -> None:
    facts = verdict(ids={"rows": distinct, "distinct": distinct})
    assert (facts.complete, len(facts.problems)) == (False, 1)


@pytest.mark.parametrize(
    "ids",
    [{"rows": 101, "duplicates": [7]}, {"rows": 101, "without_id": 1}],
    ids=["a record twice", "a record without an id"],
)
def test_a_record_that_is_not_there_once_is_a_problem(ids: dict[str, Any]) -> None:
    facts = verdict(ids=ids)
    assert (facts.complete, len(facts.problems)) == (False, 1)
    assert facts.problems[0].startswith(("1 record was listed twice", "1 record has no id"))
    assert ("id 7" in facts.problems[0]) == ("duplicates" in ids)
    both = verdict(ids={"rows": 103, "duplicates": [7], "without_id": 1})
    assert [problem[:9] for problem in both.problems] == ["2 records", "1 record "]


def test_a_listing_without_a_total_is_complete_with_a_note() -> None:
    facts = verdict({"first_total": None, "last_total": None, "totals_seen": 0})
    assert (facts.complete, facts.x_total, len(facts.notes)) == (True, None, 1)
    assert "no X-Total" in facts.notes[0]
    contradicting = verdict({"first_total": None, "last_total": None, "totals_seen": 0, "contradiction": "1, 2"})
    assert (contradicting.complete, len(contradicting.problems), contradicting.notes) == (False, 1, [])


@pytest.mark.parametrize(
    ("distinct", "complete"),
    [
        (100, True),
        (102, True),  # two were deleted after they were read
        (103, False),
        (99, False),  # a walk down the list ends with the newest page: it lacks nothing
    ],
)
def test_a_walk_down_a_list_that_moved_may_have_what_was_deleted(distinct: int, *, complete: bool) -> None:
    moved = {"totals_seen": 2, "added": 3, "deleted": 2, "followed": True, "moved": True, "again": 1}
    facts = verdict(moved, {"rows": distinct, "distinct": distinct})
    assert (facts.complete, facts.added, facts.deleted, len(facts.notes)) == (complete, 3, 2, 1)
    assert ("every record that was there" in facts.notes[0]) == complete, "a note does not contradict the verdict"


def test_a_movement_that_could_not_be_followed_is_partial_and_excuses_nothing() -> None:
    facts = verdict({"totals_seen": 2, "unsettled": True})
    assert (facts.complete, len(facts.problems), facts.added, facts.deleted, facts.notes) == (False, 1, 0, 0, [])
    short = verdict({"totals_seen": 2, "unsettled": True}, {"rows": 98, "distinct": 98})
    assert len(short.problems) == 2, "the missing records are named, too"


def test_a_walk_down_a_quiet_list_has_nothing_to_note() -> None:
    assert verdict({"followed": True}).notes == []
    assert len(verdict({"followed": True, "moved": True}).notes) == 1


def test_records_of_several_walks_are_complete_if_they_are_as_many_as_announced() -> None:
    """Only the caller knows whether X-Total was the same on every page; a record that changed its place is no problem then."""
    torn = {"unsettled": True}
    assert not verdict(torn).complete
    assert verdict(torn, walks=2).complete
    assert not verdict(torn, {"rows": 99, "distinct": 99}, walks=2).complete
    assert not verdict(torn, {"rows": 101, "duplicates": [7]}, walks=2).complete


def test_ids_that_are_texts_are_noted() -> None:
    facts = verdict(ids={"text_ids": 4})
    assert (facts.complete, len(facts.notes)) == (True, 1)
    assert facts.notes[0].startswith("4 records")


def page(total: int | None, records: int = 0) -> Page:
    return Page(number=1, url="", records=[b"{}"] * records, ids=[None] * records, total=total)  # type: ignore[list-item]


def test_changes_of_the_total_are_counted() -> None:
    """A total that returns to what it was has moved all the same."""
    facts = ListingFacts()
    for total in (None, 100, 103, None, 101, 101, 100, 101):
        facts.count(page(total, records=2), "")
    assert (facts.first_total, facts.last_total, facts.totals_seen) == (100, 101, 5)
    assert (facts.pages, facts.records) == (8, 16)


def test_the_first_contradiction_is_kept() -> None:
    facts = ListingFacts()
    for contradiction in ("", "1, 2", "", "3, 4"):
        facts.count(page(None), contradiction)
    assert facts.contradiction == "1, 2"


def test_a_walk_down_the_list_has_its_own_balance() -> None:
    facts = ListingFacts()
    facts.count(page(100), "")
    facts.count(page(104), "")
    facts.follow(1, 2, 103, moved=True)
    assert (facts.added, facts.deleted, facts.last_total, facts.followed, facts.moved) == (1, 2, 103, True, True)
    facts.follow(0, 0, None, moved=False)
    assert (facts.added, facts.deleted, facts.last_total, facts.moved) == (0, 0, 103, False)
