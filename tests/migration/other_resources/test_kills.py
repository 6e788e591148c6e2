"""I8, I9: a process that is killed beside authorities that the service made, or within a merge."""

from __future__ import annotations

from collections import Counter

import pytest

from pipelines.migration.model.plan import Plan
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.chaos import KillingWay
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import record_named, records_of
from tests.migration.other_resources.test_made_authorities import (
    check_completed,
    creates,
    make_authorities,
    names,
    of_authors,
)
from tests.migration.other_resources.test_merges import check_merged, decided, merges

pytestmark = pytest.mark.long


RESOURCES = ["authorities", "collections"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_killed_beside_authorities_of_the_service_leaves_nothing_lost_and_nothing_twice(
    pair: LibraryPair, moment: str
) -> None:
    """Killed while it creates an authority that the service does not make."""
    make_authorities(pair)
    with KillingWay(pair.sandbox.url) as way:
        through = pair.through_proxy(way.url)
        snapshot = through.newest()
        plan = through.plan(snapshot, resources=RESOURCES)
        expected = names(pair) + Counter((row.payload["name"], row.payload["kind"]) for row in creates(plan))
        made = of_authors(plan)
        way.assert_kills(through.config, plan.name, "POST", r"/authorities(/\d+)?$", moment)
        applied = through.apply(plan)
        assert (applied.failed, applied.appeared) == (0, len(made))
        check_completed(through, snapshot, made)
        assert (
            Counter({authority: number for authority, number in names(pair).items() if authority in expected})
            == expected
        )


@pytest.mark.parametrize(("moment", "sent_again"), [("before", 2), ("after", 1)])
def test_a_process_killed_within_a_merge_looks_it_up_before_it_goes_on(
    pair: LibraryPair, moment: str, sent_again: int
) -> None:
    """What had its effect is not sent again."""
    with KillingWay(pair.sandbox.url) as way:
        through = pair.through_proxy(way.url)
        snapshot: Snapshot = through.newest()
        plan, _source_id, ids = decided(through, snapshot)
        way.assert_kills(through.config, plan.name, "PATCH", "/merge$", moment)
        sent = len(merges(through))
        assert sent == (0 if moment == "before" else 1)
        assert through.apply(plan).failed == 0
        assert len(merges(through)) - sent == sent_again
        check_merged(through, snapshot, plan, ids)
        assert record_named(records_of(pair, "authorities"), plan_name(plan))["id"] == ids[0]


def plan_name(plan: Plan) -> str:
    """The name of the merged authority."""
    [row] = plan.rows("merge")
    return str(row.title)
