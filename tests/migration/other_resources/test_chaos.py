"""I8, I9: people, places and lists, too, end as if nothing had happened; and an undo that is killed leaves what was there before."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable

from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.chaos import Applies, RoughWay
from tests.migration.moving import Desk
from tests.migration.other_resources.whole import EVERYTHING, listed, without

KILLS = int(os.environ.get("BOOKFERRY_TEST_KILLS", "1"))
"""How often each is killed, at random instants; a library after the other is moved, or taken back, until it was."""

SHARE = 0.1
MOST_RUNS = 200
UNDELETED = ("authorities", "tasks")
"""The service deletes no authorities and no tasks (service.md#other-resources)."""

REFERENCES = {"publication_id": "publications", "location_id": "locations", "assignee_id": "users"}


def shown(desk: Desk) -> Counter[str]:
    """What a library holds, whatever its ids: each record, what it refers to by its name."""
    held = {one: listed(desk, one) for one in EVERYTHING}
    names = {
        resource: {number: one.get("title") or one.get("email") or one.get("name") for number, one in records.items()}
        for resource, records in held.items()
    }

    def told(resource: str, record: dict[str, object]) -> str:
        plain = {key: value for key, value in record.items() if key not in {"id", "completed_at", "assets", "cover"}}
        for key, other in REFERENCES.items():
            if plain.get(key) is not None:
                plain[key] = names[other][plain[key]]
        if "publication_ids" in plain:
            plain["publication_ids"] = sorted(names["publications"][one] for one in record["publication_ids"])
        if plain.get("contributor"):
            plain["contributor"] = names["users"][record["contributor"]["id"]]
        plain["categories"] = sorted(one["name"] for one in record.get("categories", ()))
        return f"{resource} {sorted(plain.items())}"

    return Counter(told(resource, one) for resource, records in held.items() for one in records.values())


def fewer_people(desk: Desk) -> Desk:
    """Three of the people have no account in the target yet."""
    for name in ("Yuki", "Tobias", "Marta"):
        without(desk, name)
    return desk


def test_every_resource_ends_as_if_nothing_had_happened_and_an_undo_leaves_what_was_there(
    desk: Desk, snapshot: Snapshot, another_target: Callable[[], Desk]
) -> None:
    """Resets and 500s before and after the effect, 429, cut bodies, hangs, expired tokens, and kills: nothing twice, nothing lost."""
    before = shown(fewer_people(desk))
    desk.apply(desk.plan(snapshot, resources=EVERYTHING))
    undisturbed, dice, kills = shown(desk), random.Random(20261122), Counter[str]()
    while min(kills["apply"], kills["undo"]) < KILLS:
        target = fewer_people(another_target())
        with RoughWay(target.sandbox.url, SHARE, seed=dice.randrange(1000)) as way:
            rough = target.through(way.url)
            plan = rough.plan(rough.newest(), resources=EVERYTHING)
            kills["apply"] += run_killed("apply", rough, plan.name, dice, KILLS - kills["apply"])
            assert shown(target) == undisturbed
            kills["undo"] += run_killed("undo", rough, plan.name, dice, KILLS - kills["undo"])
        left = shown(target)
        assert not before - left
        assert {one.split()[0] for one in left - before} <= {*UNDELETED}


def run_killed(what: str, desk: Desk, plan: str, dice: random.Random, most: int) -> int:
    """Apply a plan, or undo it, until that comes to its end; how often it was killed."""
    applies, statuses = Applies(), list[int]()
    while not statuses or statuses[-1]:
        assert len(statuses) < MOST_RUNS, applies.close()
        killed = sum(status < 0 for status in statuses)
        kill_after = dice.uniform(0.05, 4.0) if killed < most else None
        statuses.append(applies.run(desk.config, plan, kill_after, what=what))
    said = applies.close()
    desk.sandbox.change(desk.target, oauth={"access_token_seconds": 3600})
    print(what, statuses, said)  # noqa: T201  for whoever runs it with -s
    return sum(status < 0 for status in statuses)
