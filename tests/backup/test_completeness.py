"""The verdict on a listing: complete only where every record is in it once (I4)."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.backup.completeness import prove_listing
from pipelines.service.listing.listing_facts import ListingFacts
from pipelines.store.snapshots.captures import IdCounts
from pipelines.store.snapshots.facts import ResourceFacts


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
    shuffled = verdict({"unsettled": True})
    assert shuffled.problems[0].startswith("Records changed their places"), "X-Total shows no addition and no deletion"


def test_records_of_several_walks_are_complete_if_they_are_as_many_as_announced() -> None:
    """Only the caller knows whether X-Total was the same on every page; a record that changed its place is no problem then."""
    torn = {"unsettled": True}
    assert not verdict(torn).complete
    assert verdict(torn, walks=2).complete
    assert not verdict(torn, {"rows": 99, "distinct": 99}, walks=2).complete
    assert not verdict(torn, {"rows": 101, "duplicates": [7]}, walks=2).complete
