"""I8, I9: faults and kills change nothing in the result of an apply; the additional requests are counted."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.chaos import WAYS, RoughWay, run_killed
from tests.migration.conftest import REAL
from tests.migration.library_pair import LibraryPair
from tests.migration.test_flow import comparable

KILLS = int(os.environ.get("BOOKFERRY_TEST_KILLS", "2"))
"""Kills at random instants of an apply; libraries are moved until there were so many."""


@pytest.fixture
def pair(pair: LibraryPair, numbers: Iterator[int]) -> LibraryPair:
    """A library that is large enough to be killed in the middle of it."""
    large = LibraryPair.at(pair.config.parent / "large", pair.sandbox, "large", f"empty{next(numbers)}")
    large.back_up()
    return large


def contents_of(records: list[dict[str, Any]]) -> Counter[str]:
    """The records of a library without their ids, each with its cover and its files."""
    return Counter(
        repr(
            (
                sorted(comparable(record).items(), key=str),
                record["cover"] and record["cover"]["metadata"]["size"],
                sorted((file["name"], file["file"]["metadata"]["size"]) for file in record["assets"]),
            )
        )
        for record in records
    )


@pytest.mark.long
@pytest.mark.parametrize(("faults", "share"), WAYS)
def test_killed_again_and_again_on_a_rough_way_it_ends_as_if_nothing_had_happened(
    pair: LibraryPair,
    snapshot: Snapshot,
    another_target: Callable[[], LibraryPair],
    faults: Sequence[str],
    share: float,
) -> None:
    """Resets and 500s before, long before and after the effect, 429, cut bodies, late effects, late index, expired tokens."""
    pair.apply(pair.plan(snapshot))
    expected, dice, kills = contents_of(pair.publications()), random.Random(20261121), 0
    while kills < KILLS:
        way = RoughWay(pair.sandbox.url, share, dice.randrange(1000), faults)
        kills += move_with_faults(another_target(), way, expected, dice, KILLS - kills)


def move_with_faults(pair: LibraryPair, way: RoughWay, expected: Counter[str], dice: random.Random, most: int) -> int:
    """Move a library with faults and kills. Returns how often the apply was killed."""
    with way:
        rough = pair.through_proxy(way.url, token_seconds=2)
        plan = rough.plan(rough.newest())
        before = pair.requests()
        kills = run_killed(rough.config, plan.name, dice, most=most, longest=3.0)
    pair.sandbox.change(pair.target, oauth={"access_token_seconds": 3600})
    records = pair.publications()
    assert contents_of(records) == expected
    assert len(records) == REAL
    extra = pair.requests() - before - plan.facts.requests
    print(f"{kills} kills, {extra} more requests than planned", dict(way.happened))  # noqa: T201  seen with -s
    return kills
