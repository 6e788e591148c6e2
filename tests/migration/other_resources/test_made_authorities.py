"""Authorities that the service makes by itself, of the authors of publications, are left, and the next plan takes them."""

from __future__ import annotations

from collections import Counter

import pytest

from pipelines.migration.apply.run import Selection
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import (
    VARIANTS,
    WITH_VARIANTS,
    back_up,
    plan_rows,
    record_named,
    records_of,
)

RESOURCES = ["authorities", "collections"]


def make_authorities(pair: LibraryPair, manner: str = "matched") -> None:
    """From now on, the service makes authorities of the authors of publications."""
    pair.sandbox.change(pair.target, variations={"author_authorities": manner})


def names(pair: LibraryPair) -> Counter[tuple[str, str]]:
    """Name and kind → how many authorities of the target have them."""
    return Counter((record["name"], record["kind"]) for record in records_of(pair, "authorities").values())


def creates(plan: Plan) -> list[PlanRow]:
    return plan_rows(plan, "authorities", Action.CREATE)


def of_authors(plan: Plan) -> set[tuple[str, str]]:
    """Name and kind of the planned authorities that the service makes itself."""
    publications = plan_rows(plan, "publications", Action.CREATE)
    authors = {(author["name"], author["type"]) for row in publications for author in row.payload.get("authors", ())}
    return authors & {(row.payload["name"], row.payload["kind"]) for row in creates(plan)}


def posts(pair: LibraryPair) -> int:
    """Creations of authorities that were sent to the target."""
    return sum(method == "POST" and path.endswith("/authorities") for method, path in pair.writes())


def check_completed(pair: LibraryPair, snapshot: Snapshot, made: set[tuple[str, str]]) -> None:
    """Plan and apply again, and check that nothing is lacking, and that nothing is there twice."""
    plan = pair.plan(snapshot, resources=RESOURCES)
    assert not {(row.payload["name"], row.payload["kind"]) for row in creates(plan)} & made
    applied = pair.apply(plan)
    assert (applied.failed, applied.left, applied.lacking.writes) == (0, 0, 0)
    assert pair.verify(plan).as_planned
    assert max(names(pair)[authority] for authority in made) == 1
    assert record_named(records_of(pair, "authorities"), WITH_VARIANTS)["variants"] == VARIANTS
    assert {*pair.plan(snapshot, resources=RESOURCES).facts.counts["authorities"]} == {"unchanged"}


@pytest.mark.long
@pytest.mark.parametrize("manner", ["matched", "own"])
def test_authorities_that_the_service_made_are_left_and_the_next_plan_adds_what_they_lack(
    pair: LibraryPair, snapshot: Snapshot, manner: str
) -> None:
    """None is there twice; apply says how many, and applying the plan again changes nothing."""
    plan = pair.plan(snapshot, resources=RESOURCES)
    made, before = of_authors(plan), pair.requests()
    assert plan.facts.resources == ["publications", "authorities", "collections"]
    make_authorities(pair, manner)
    result = pair.apply(plan)
    assert (result.appeared, result.failed, result.complete) == (len(made), 0, False)
    assert result.left >= result.appeared
    assert posts(pair) == len(creates(plan)) - len(made) > 0
    assert pair.requests() - before == result.requests < plan.facts.requests
    assert {names(pair)[authority] for authority in made} == {1}
    writes = len(pair.writes())
    second_apply = pair.apply(plan)
    assert (second_apply.appeared, second_apply.failed, len(pair.writes())) == (len(made), 0, writes)
    check_completed(pair, snapshot, made)


@pytest.mark.long
def test_several_new_records_of_one_name_are_left_to_a_person(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I8: several matches never become an insert. I9: what is made between two runs makes the plan not stale."""
    plan = pair.plan(snapshot, resources=RESOURCES)
    publications = len(plan_rows(plan, "publications", *WRITTEN_ACTIONS))
    pair.apply(plan, selection=Selection(limit=publications))
    row = creates(plan)[-1]
    for _ in range(2):
        pair.call("POST", "authorities", {"name": row.payload["name"], "kind": row.payload["kind"]})
    sent = posts(pair)
    applied = pair.apply(plan)
    assert (applied.failed, applied.appeared) == (0, 1)
    assert posts(pair) - sent == len(creates(plan)) - 1
    [conflict] = plan_rows(pair.plan(snapshot, resources=RESOURCES), "authorities", Action.CONFLICT)
    assert (conflict.source_id, conflict.reason) == (row.source_id, "several_targets")


@pytest.mark.long
def test_of_two_records_of_one_name_one_is_left_and_one_is_created(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The source has the name twice: the target gets it twice, too, whichever row comes first."""
    source = pair.library()
    before = records_of(pair, "authorities", "library")
    twin = source.call("POST", "authorities", {"name": WITH_VARIANTS, "kind": "person"})
    try:
        twin_snapshot = back_up(pair, "twins")
    finally:
        [author] = [number for number, kept in before.items() if kept["name"] == WITH_VARIANTS]
        source.call("PATCH", f"authorities/{twin['id']}/merge", {"into_id": author})
        assert records_of(pair, "authorities", "library") == before
    plan = pair.plan(twin_snapshot, resources=RESOURCES)
    make_authorities(pair)
    assert pair.apply(plan).appeared == len(of_authors(plan))
    later = pair.plan(twin_snapshot, resources=RESOURCES)
    assert pair.apply(later).failed == 0
    assert names(pair)[WITH_VARIANTS, "person"] == 2
    assert pair.verify(later).as_planned
