"""I8, I9: faults and kills change nothing in the result of an apply of every resource, nor in that of an undo."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.chaos import WAYS, RoughWay, run_killed
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import ALL_RESOURCES, UNDELETED, contents_of, delete_user

KILLS = int(os.environ.get("BOOKFERRY_TEST_KILLS", "1"))
"""Kills of each, apply and undo, at random instants; libraries are moved and taken back until there were so many."""


def without_three_users(pair: LibraryPair) -> LibraryPair:
    """Three of the users have no account in the target yet."""
    for name in ("Yuki", "Tobias", "Marta"):
        delete_user(pair, name)
    return pair


@pytest.mark.long
@pytest.mark.parametrize(("faults", "share"), WAYS)
def test_apply_and_undo_of_every_resource_survive_faults_and_kills(
    pair: LibraryPair,
    snapshot: Snapshot,
    another_target: Callable[[], LibraryPair],
    faults: Sequence[str],
    share: float,
) -> None:
    """Resets, 500s and cut bodies before and after the effect, 429, late effects, expired tokens, kills: none is twice or lost."""
    before = contents_of(without_three_users(pair))
    pair.apply(pair.plan(snapshot, resources=ALL_RESOURCES))
    expected, dice, kills = contents_of(pair), random.Random(20261122), Counter[str]()
    while min(kills["apply"], kills["undo"]) < KILLS:
        target = without_three_users(another_target())
        with RoughWay(target.sandbox.url, share, dice.randrange(1000), faults) as way:
            rough = target.through_proxy(way.url, token_seconds=2)
            plan = rough.plan(rough.newest(), resources=ALL_RESOURCES)
            for command in ("apply", "undo"):
                most = KILLS - kills[command]
                kills[command] += run_killed(rough.config, plan.name, dice, most=most, longest=4.0, command=command)
                pair.sandbox.change(target.target, oauth={"access_token_seconds": 3600})
                assert command == "undo" or contents_of(target) == expected
        left = contents_of(target)
        assert not before - left
        assert {record.split()[0] for record in left - before} <= {*UNDELETED}
