"""I8, I9: whatever happens on the way, and whenever it is killed, the target ends as if nothing had; what is extra is counted."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from pipelines.store.snapshots import Snapshot
from tests.migration.chaos import Applies, RoughWay
from tests.migration.conftest import RECORDS
from tests.migration.moving import Desk
from tests.migration.test_moving import comparable

KILLS = int(os.environ.get("BOOKFERRY_TEST_KILLS", "2"))
"""How often it is killed, at random instants of an apply."""

SHARE = 0.1
"""Of the requests to which something happens."""

MOST_RUNS = 40 + 3 * KILLS


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
    desk: Desk, snapshot: Snapshot, another_target: Callable[[], Desk], record_property: Callable[[str, object], None]
) -> None:
    """Resets and 500s before and after the effect, 429, cut bodies, hangs, a search that lags, refused tokens: one request in ten."""
    calm = another_target()
    calm.apply(calm.plan(snapshot))
    dice, applies, killed = random.Random(20261121), Applies(), 0
    with RoughWay(desk.sandbox.url, SHARE, seed=7) as way:
        rough = desk.through(way.url)
        planned = rough.plan(rough.newest())
        before = desk.requests()
        for _run in range(MOST_RUNS):
            seconds = dice.uniform(0.05, 2.0) if killed < KILLS else None
            status = applies.run(rough.config, planned.name, seconds)
            killed += status < 0
            if status == 0 and killed >= KILLS:
                break
    said = applies.close()
    assert status == 0, said
    desk.sandbox.change(desk.target, oauth={"access_token_seconds": 3600})
    assert shown(desk.held()) == shown(calm.held())
    assert len(desk.held()) == RECORDS
    extra = desk.requests() - before - planned.facts.requests
    record_property("kills", killed)
    record_property("faults", dict(way.happened))
    record_property("extra_requests", extra)
