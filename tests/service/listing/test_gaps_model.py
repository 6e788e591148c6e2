"""I4, I6: a model of a library with records that cannot be sent, whatever their places, the order, the pages and what people do."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from math import ceil

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipelines.errors import BookferryError
from pipelines.service.http.budget import Budget
from pipelines.service.listing.listing import Listing
from pipelines.service.listing.listing_facts import ListingFacts
from pipelines.service.listing.page_checkpoint import WalkLog
from pipelines.store.snapshots.facts import ResourceFacts
from tests.service.listing.clients import client_of, unlimited_budget
from tests.service.listing.test_drift_model import MovingLibrary, proved
from tests.service.manual_clock import ManualClock

__all__ = ["unlimited_budget"]

ANSWERS = {
    **{str(status): (status, b'{"error": {"code": "E", "message": "M"}}') for status in (403, 404, 422, 500)},
    "no JSON": (200, b"<html>Something went wrong</html>"),
    "no records": (200, b'{"records": []}'),
}


@dataclass
class GappyLibrary(MovingLibrary):
    """A page with any record of the `bad` places at the beginning gets `answer`."""

    bad: Sequence[int] = ()
    answer: str = "500"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cannot = {self.ids[place % len(self.ids)] for place in self.bad} if self.ids else set[int]()

    def page(self, ids: list[int]) -> tuple[int, bytes]:
        return super().page(ids) if self.cannot.isdisjoint(ids) else ANSWERS[self.answer]


class Log:
    """The pages of a walk, in memory."""

    def __init__(self) -> None:
        self.entries = list[tuple[bytes, bytes]]()

    def replay(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield them in order."""
        return iter([*self.entries])

    def append(self, checkpoint: bytes, body: bytes) -> None:
        """Store one more page."""
        self.entries.append((checkpoint, body))


def walked(library: GappyLibrary, budget: Budget, stop: int = 0) -> tuple[ListingFacts, ResourceFacts, list[int]]:
    """One walk: its facts, the proof, and the ids that were read. `stop`: an earlier process read so many pages of it."""
    client = client_of(library, budget, ManualClock())
    log = Log()
    if stop:
        with closing(Listing(client, ["publications"], log=WalkLog(log)).pages()) as pages:
            deque(islice(pages, stop), maxlen=0)
    listing = Listing(client, ["publications"], log=WalkLog(log))
    facts, ids = proved(
        listing.facts, [number for page in listing.pages() for number in page.ids if number is not None]
    )
    return listing.facts, facts, ids


def libraries(*, changes: int, bad: int) -> st.SearchStrategy[GappyLibrary]:
    """`changes`: between how many requests something may change; `bad`: the most records that cannot be sent."""
    a_change = st.tuples(st.sampled_from(["add", "delete"]), st.integers(0, 200))
    return st.builds(
        GappyLibrary,
        size=st.integers(2, 130),
        page_size=st.sampled_from([50, 25, 20]),
        order=st.sampled_from(["oldest first", "newest first", "any"]),
        changes=st.lists(st.lists(a_change, max_size=1), max_size=changes),
        link=st.booleans(),
        bad=st.lists(st.integers(0, 200), max_size=bad),
        answer=st.sampled_from(sorted(ANSWERS)),
    )


def shows_that_it_is_served(library: GappyLibrary) -> bool:
    """Whether one of the first records can be read, or all can."""
    return not library.cannot.issuperset(library.ids[:3])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(libraries(changes=0, bad=2).filter(shows_that_it_is_served), st.integers(0, 3))
@example(GappyLibrary(10, 50, "oldest first", [], bad=[0]), 0)
@example(GappyLibrary(26, 20, "oldest first", [], link=False, bad=[0]), 0)
@example(GappyLibrary(120, 25, "newest first", [], bad=[0, 60], answer="404"), 0)
@example(GappyLibrary(100, 50, "newest first", [], bad=[34, 99], answer="no records"), 1)
@example(GappyLibrary(75, 50, "oldest first", [], bad=[0], answer="422"), 0)
@example(GappyLibrary(75, 50, "newest first", [], link=False, bad=[25], answer="403"), 0)
@example(GappyLibrary(75, 25, "oldest first", [], link=False, bad=[0, 60], answer="403"), 0)
@example(GappyLibrary(41, 20, "oldest first", [], link=False, bad=[0, 40], answer="403"), 0)
def test_at_rest_every_other_record_is_read_and_each_gap_is_named(
    unlimited_budget: Budget, library: GappyLibrary, stop: int
) -> None:
    """Also where the walk is resumed after some pages."""
    library.asked.clear()
    walk, facts, ids = walked(library, unlimited_budget, stop)
    assert Counter(ids) == Counter(library.ids) - Counter(library.cannot)
    assert facts.complete == (not library.cannot)
    named = {library.ids[place - 1] for gap in walk.gaps.values() for place in range(gap.place, gap.last + 1)}
    assert named == library.cannot
    assert len(library.asked) <= 3 * ceil(library.size / library.page_size) + 80


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(libraries(changes=60, bad=3))
@example(
    GappyLibrary(100, 50, "newest first", [*[[]] * 9, [("delete", 28)]], link=False, bad=[40], answer="422"),
)
@example(GappyLibrary(52, 50, "any", [[("add", 51)], [("delete", 0)]], link=False))
@example(
    GappyLibrary(
        *(2, 50, "newest first", [[], [("add", 0)], [("add", 0)], [], [("delete", 2)], [("delete", 0)]]),
        link=False,
        bad=[0],
        answer="403",
    )
)
def test_what_counts_as_complete_has_every_record_that_lived_throughout(
    unlimited_budget: Budget, library: GappyLibrary
) -> None:
    """Also where the list moves while the parts of a page are read, one by one."""
    library.__post_init__()
    library.asked.clear()
    with suppress(BookferryError):  # nothing of it can be read
        _walk, facts, ids = walked(library, unlimited_budget)
        if facts.complete:
            assert library.throughout <= set(ids)
            assert len(ids) == len(set(ids))
