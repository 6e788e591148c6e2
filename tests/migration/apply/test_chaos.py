"""I8, I9: whatever happens on the way, and whenever it is killed, the target ends as if nothing had; what is extra is counted."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.chaos import Applies, RoughWay
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair
from tests.migration.test_flow import comparable

KILLS = int(os.environ.get("BOOKFERRY_TEST_KILLS", "2"))
"""How often it is killed, at random instants of an apply; a library after the other is moved until it was."""

SHARE = float(os.environ.get("BOOKFERRY_TEST_FAULTS", "0.1"))
"""Of the requests to which something happens; 0.6 is each of the faults at about one in ten."""

MOST_RUNS = 200
"""Of one library, killed ones and those that were ended by what happened."""


def shown(records: list[dict[str, Any]]) -> Counter[str]:
    """What a library holds, whatever its ids: each record with its cover and its files."""
    return Counter(
        repr(
            (
                sorted(comparable(one).items(), key=str),
                one["cover"] and one["cover"]["metadata"]["size"],
                sorted((file["name"], file["file"]["metadata"]["size"]) for file in one["assets"]),
            )
        )
        for one in records
    )


def test_killed_again_and_again_on_a_rough_way_it_ends_as_if_nothing_had_happened(
    pair: LibraryPair, snapshot: Snapshot, another_target: Callable[[], LibraryPair]
) -> None:
    """Resets and 500s before and after the effect, 429, cut bodies, hangs, a search that lags, expired tokens: one request in ten."""
    pair.apply(pair.plan(snapshot))
    undisturbed, dice, kills = shown(pair.publications()), random.Random(20261121), 0
    while kills < KILLS:
        kills += moved_on_a_rough_way(another_target(), undisturbed, dice, KILLS - kills)


def moved_on_a_rough_way(pair: LibraryPair, undisturbed: Counter[str], dice: random.Random, most: int) -> int:
    """Move a library whatever happens; how often the apply was killed."""
    applies, statuses = Applies(), list[int]()
    with RoughWay(pair.sandbox.url, SHARE, seed=dice.randrange(1000)) as way:
        rough = pair.through_proxy(way.url)
        plan = rough.plan(rough.newest())
        before = pair.requests()
        while not statuses or statuses[-1]:
            assert len(statuses) < MOST_RUNS, applies.close()
            killed = sum(status < 0 for status in statuses)
            statuses.append(applies.run(rough.config, plan.name, dice.uniform(0.05, 3.0) if killed < most else None))
    said = applies.close()
    pair.sandbox.change(pair.target, oauth={"access_token_seconds": 3600})
    held = pair.publications()
    assert shown(held) == undisturbed, said
    assert len(held) == RECORDS
    kills, extra = sum(status < 0 for status in statuses), pair.requests() - before - plan.facts.requests
    told = f"{kills} kills in {len(statuses)} runs, {way.happened.total()} faults, {extra} requests more than planned"
    print(told, dict(way.happened))  # noqa: T201  figures, for whoever runs it with -s
    return kills
