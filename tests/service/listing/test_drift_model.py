"""I4: a model of a library that people change while it is listed: a listing that counts as complete is complete, whatever changes when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipelines.backup.completeness import prove_listing
from pipelines.service.http.budget import Budget
from pipelines.service.listing.listing import Listing
from pipelines.service.listing.listing_facts import ListingFacts
from pipelines.store.snapshots.captures import IdCounts
from pipelines.store.snapshots.facts import ResourceFacts
from tests.service.listing.clients import BASE, client_of, unlimited_budget

__all__ = ["unlimited_budget"]

WALKS = 3

Change = tuple[str, int]
"""One change (add or delete), and a number that says where."""


@dataclass
class MovingLibrary(httpx.BaseTransport):
    """Ids in a stable order, with the given changes before each response. Knows nothing of the client's walk.

    The bytes of a record differ from response to response, as signed addresses make it.
    """

    size: int
    page_size: int
    order: str
    changes: Sequence[Sequence[Change]]
    link: bool = True
    asked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ids = list(range(1, self.size + 1))
        if self.order == "newest first":
            self.ids.reverse()
        self.throughout = set(self.ids)
        self.newest = self.size

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return one page of the size that is asked for, up to `page_size`, after the changes before it."""
        number, size = int(request.url.params["page"]), min(int(request.url.params["per_page"]), self.page_size)
        if self.asked and len(self.asked) <= len(self.changes):
            self._change(self.changes[len(self.asked) - 1])
        self.asked.append(number)
        last = max(1, ceil(len(self.ids) / size))
        headers = {"X-Total": str(len(self.ids)), "content-type": "application/json"}
        if self.link:
            pages = {"first": 1, "prev": number - 1, "next": number + 1, "last": last}
            url = f"{BASE}/api/v2/publications?per_page={size}&page="
            headers["Link"] = ", ".join(
                f'<{url}{page}>; rel="{rel}"' for rel, page in pages.items() if 1 <= page <= last
            )
        status, content = self.page(self.ids[(number - 1) * size : number * size])
        return httpx.Response(status, content=content, headers=headers)

    def page(self, ids: list[int]) -> tuple[int, bytes]:
        """Status and body of a page with these records."""
        return 200, json.dumps({"records": [{"id": record_id, "read": len(self.asked)} for record_id in ids]}).encode()

    def _change(self, changes: Sequence[Change]) -> None:
        kinds = {kind for kind, _position in changes}
        for kind, position in changes:
            if kind == "add" and not (kinds >= {"add", "delete"} and self._balanced_unseen()):
                self.newest += 1
                place = {"oldest first": len(self.ids), "newest first": 0}.get(
                    self.order, position % (len(self.ids) + 1)
                )
                self.ids.insert(place, self.newest)
            elif kind == "delete" and self.ids:
                self.throughout.discard(self.ids.pop(position % len(self.ids)))

    def _balanced_unseen(self) -> bool:
        """Whether no client could see that as many records were deleted as added.

        That is so in the middle of the list, or before there is anything to compare.
        """
        return self.order == "any" or len(self.asked) == 1


def listed(library: MovingLibrary, budget: Budget) -> tuple[ResourceFacts, list[int], int]:
    """Does the work of `backup.read_raw` without the disk: returns the proof, the stored ids and the number of walks."""
    client = client_of(library, budget)
    earlier_outcome = None
    for walk in range(1, WALKS + 1):
        listing = Listing(client, ["publications"], walk=walk)
        facts, ids = proved(
            listing.facts, [record_id for page in listing.pages() for record_id in page.ids if record_id is not None]
        )
        restart = not facts.complete
        if not restart or (outcome := (facts.records, facts.distinct_ids, facts.x_total)) == earlier_outcome:
            break
        earlier_outcome = outcome
    return facts, ids, walk


def proved(listing: ListingFacts, ids: list[int]) -> tuple[ResourceFacts, list[int]]:
    """Returns the verdict, and the ids in the raw table."""
    if listing.followed:
        ids = list(dict.fromkeys(ids))
    repeated_ids = [record_id for record_id, count in Counter(ids).items() if count > 1]
    return prove_listing(listing, IdCounts(len(ids), len(set(ids)), 0, list(repeated_ids))), ids


a_change = st.tuples(st.sampled_from(["add", "delete"]), st.integers(0, 200))
libraries = st.builds(
    MovingLibrary,
    size=st.integers(0, 60),
    page_size=st.integers(3, 10),
    order=st.sampled_from(["oldest first", "oldest first", "newest first", "any"]),
    changes=st.lists(st.lists(a_change, max_size=4), max_size=25),
    link=st.booleans(),
)


@pytest.mark.long
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(libraries)
@example(MovingLibrary(20, 5, "oldest first", [[], [], [("delete", 0), ("add", 0)]]))
@example(MovingLibrary(20, 5, "oldest first", [[], [("delete", 0)]]))
@example(MovingLibrary(20, 5, "newest first", [[], [("add", 0)] * 4]))
def test_a_complete_listing_has_every_record_that_lived_throughout(
    unlimited_budget: Budget, library: MovingLibrary
) -> None:
    """I4: the snapshot has every record that lived throughout, none twice, or is marked partial; and the listing ends."""
    library.__post_init__()
    library.asked.clear()
    facts, ids, _walks = listed(library, unlimited_budget)
    if facts.complete:
        assert library.throughout <= set(ids)
        assert len(ids) == len(set(ids))
    pages = ceil(library.newest / library.page_size) + 1
    assert len(library.asked) <= WALKS * (3 * max(pages, 20) + 10)


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(libraries.filter(lambda library: library.order != "any"))
@example(MovingLibrary(20, 5, "oldest first", [[], [], [("delete", 0), ("add", 0)]]))
@example(MovingLibrary(20, 5, "oldest first", [[], [], [], [("delete", 0), ("add", 0)]]))
@example(MovingLibrary(20, 5, "newest first", [[("delete", 19), ("add", 0)], [("delete", 0)] * 3]))
@example(MovingLibrary(20, 5, "newest first", [[("delete", 19)] * 4, [("add", 0)] * 4, [("delete", 19)] * 4]))
def test_no_record_slips_past_a_walk_down_a_sorted_list(unlimited_budget: Budget, library: MovingLibrary) -> None:
    """I4: whatever changes between two requests, also as many additions as deletions; complete or not, in one walk."""
    library.__post_init__()
    library.asked.clear()
    facts, ids, walks = listed(library, unlimited_budget)
    if walks == 1:
        assert library.throughout <= set(ids)
    if facts.complete:
        assert len(ids) == len(set(ids))


@pytest.mark.long
@pytest.mark.parametrize("order", ["oldest first", "newest first"])
def test_pairs_that_x_total_does_not_show_are_followed(unlimited_budget: Budget, order: str) -> None:
    """One record is deleted and one added between the same two requests, every ten pages: complete, in one walk."""
    pairs = [[("add", 0), ("delete", 7 * page)] if page % 10 == 9 else [] for page in range(100)]
    library = MovingLibrary(5000, 50, order, pairs)
    facts, ids, walks = listed(library, unlimited_budget)
    assert (facts.complete, walks, facts.x_total) == (True, 1, 5000)
    assert library.throughout <= set(ids)
    assert len(ids) == len(set(ids))
    assert len(library.asked) <= 102


MOVED: dict[str, tuple[MovingLibrary, list[int], int]] = {
    "the newest page is read again: nothing was added": (
        MovingLibrary(5000, 50, "oldest first", [[]] * 60 + [[("delete", 1007)]]),
        [1, *range(100, 1, -1), 100],
        1,
    ),
    "a record sinks to the first page, where ids leave a gap": (
        MovingLibrary(200, 50, "oldest first", [[], [("delete", 49)], [("delete", 7)]]),
        [1, 4, 3, 2, 1, 4],
        2,
    ),
    "newest first: the page before it closes the gap, the newest page is read again": (
        MovingLibrary(5000, 50, "newest first", [[]] * 60 + [[("delete", 7)]]),
        [*range(1, 63), *range(61, 101), 1],
        1,
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_deletion_costs_few_more_requests(unlimited_budget: Budget, name: str) -> None:
    """Pages that show where the records went are read again, and no other."""
    library, pages, deleted = MOVED[name]
    facts, ids, walks = listed(library, unlimited_budget)
    assert (facts.complete, walks, facts.deleted) == (True, 1, deleted)
    assert "people added or deleted records" in facts.notes[0]
    assert library.throughout <= set(ids)
    assert library.asked == pages


@pytest.mark.parametrize(("changes", "walks"), [([], 1), ([[]] * 4 + [[("delete", 499)]], 2)])
def test_a_list_that_only_begins_in_the_order_of_its_ids(
    unlimited_budget: Budget, changes: list[list[Change]], walks: int
) -> None:
    """At rest X-Total decides, as for a list in no order, and no request is added. If it moves, it needs another walk."""
    library = MovingLibrary(500, 50, "oldest first", changes)
    library.ids[210:290] = reversed(library.ids[210:290])
    facts, ids, walk_count = listed(library, unlimited_budget)
    assert (facts.complete, facts.problems, walk_count) == (True, [], walks)
    assert library.throughout <= set(ids)
    assert changes or len(library.asked) == 10


def test_a_missing_last_page_is_no_error_where_records_were_deleted(unlimited_budget: Budget) -> None:
    """X-Total of the page before it confirms that the list has become shorter."""

    class Refusing(MovingLibrary):
        def page(self, ids: list[int]) -> tuple[int, bytes]:
            return super().page(ids) if ids else (404, b"{}")

    library = Refusing(201, 50, "oldest first", [[("delete", 3)] * 2])
    facts, ids, _walks = listed(library, unlimited_budget)
    assert facts.complete
    assert library.throughout <= set(ids)
    assert library.asked[:3] == [1, 5, 4]
