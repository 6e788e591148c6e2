"""Authorities that the service makes by itself, of the authors of publications, are adopted and not made again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

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
    token_of,
)

RESOURCES = ["authorities", "collections"]


def make_authorities(pair: LibraryPair, manner: str = "matched") -> None:
    """From now on, the service makes authorities of the authors of publications."""
    pair.sandbox.change(pair.target, variations={"author_authorities": manner})


def names(pair: LibraryPair) -> Counter[tuple[str, str]]:
    """Name and kind → authorities of the target."""
    return Counter((one["name"], one["kind"]) for one in records_of(pair, "authorities").values())


def creates(plan: Plan) -> list[PlanRow]:
    return plan_rows(plan, "authorities", Action.CREATE)


def of_authors(plan: Plan) -> set[tuple[str, str]]:
    """Name and kind of the planned authorities that the service makes itself."""
    publications = plan_rows(plan, "publications", Action.CREATE)
    authors = {(one["name"], one["type"]) for row in publications for one in row.payload.get("authors", ())}
    return authors & {(row.payload["name"], row.payload["kind"]) for row in creates(plan)}


def posts(pair: LibraryPair) -> int:
    """Creations of authorities that were sent to the target."""
    return sum(method == "POST" and path.endswith("/authorities") for method, path in pair.writes())


@pytest.mark.long
@pytest.mark.parametrize("manner", ["matched", "own"])
def test_authorities_that_the_service_made_are_adopted_and_get_what_they_lack(
    pair: LibraryPair, snapshot: Snapshot, manner: str
) -> None:
    """None is there twice, a second plan is empty, verify proves it; undo takes back what was added and names what stays."""
    plan = pair.plan(snapshot, resources=RESOURCES)
    adopted, before = of_authors(plan), pair.requests()
    assert plan.facts.resources == ["publications", "authorities", "collections"]
    make_authorities(pair, manner)
    result = pair.apply(plan)
    assert (result.adopted, result.failed) == (len(adopted), 0)
    assert posts(pair) == len(creates(plan)) - len(adopted) > 0
    assert pair.requests() - before == result.requests < plan.facts.requests
    assert {names(pair)[one] for one in adopted} == {1}
    assert record_named(records_of(pair, "authorities"), WITH_VARIANTS)["variants"] == VARIANTS
    with pair.migration() as migration:
        status = migration.status(plan)
        assert migration.verify(plan).as_planned
        assert (status.adopted, status.written, status.refused) == (len(adopted), True, 0)
    assert {*pair.plan(snapshot, resources=RESOURCES).facts.counts["authorities"]} == {"unchanged"}
    writes = len(pair.writes())
    assert pair.apply(plan).adopted == 0
    assert len(pair.writes()) == writes
    if manner == "own":
        return

    with pair.migration() as migration:
        would_leave = migration.undo(plan).left
        undone = migration.undo(plan, really=True)
    left = [one for one in undone.findings if "the service made it itself" in one.problem]
    assert (undone.left, len(left)) == (would_leave, len(adopted))
    assert record_named(records_of(pair, "authorities"), WITH_VARIANTS)["variants"] == []
    assert pair.apply(plan).failed == 0
    assert max(names(pair)[one] for one in adopted) == 1
    assert {*pair.plan(snapshot, resources=RESOURCES).facts.counts["authorities"]} == {"unchanged"}


def test_several_new_records_of_one_name_are_left_to_a_person(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I8: several matches never become an insert."""
    plan = pair.plan(snapshot, resources=RESOURCES)
    publications = len(plan_rows(plan, "publications", *WRITTEN_ACTIONS))
    pair.apply(plan, selection=Selection(limit=publications))
    row = creates(plan)[-1]
    for _ in range(2):
        pair.call("POST", "authorities", {"name": row.payload["name"], "kind": row.payload["kind"]})
    sent = posts(pair)
    [failure] = pair.apply(plan).failures
    assert failure.source_id == row.source_id
    assert "several new records of its name" in failure.problem
    assert posts(pair) - sent == len(creates(plan)) - 1
    [conflict] = plan_rows(pair.plan(snapshot, resources=RESOURCES), "authorities", Action.CONFLICT)
    assert (conflict.source_id, conflict.reason) == (row.source_id, "several_targets")


@pytest.mark.long
def test_of_two_records_of_one_name_one_adopts_and_one_is_created(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The source has the name twice: the target gets it twice, too, whichever row comes first."""
    source = replace(pair, target="library", token=token_of(pair, "library"))
    twin = source.call("POST", "authorities", {"name": WITH_VARIANTS, "kind": "person"})
    try:
        plan = pair.plan(back_up(pair, "twins"), resources=RESOURCES)
    finally:
        source.call("PATCH", f"authorities/{twin['id']}", {"name": f"{WITH_VARIANTS} {pair.target}"})
    make_authorities(pair)
    assert pair.apply(plan).adopted == len(of_authors(plan))
    assert names(pair)[WITH_VARIANTS, "person"] == 2
    with pair.migration() as migration:
        assert migration.verify(plan).as_planned


def test_a_value_that_the_service_set_otherwise_stays_and_is_named(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The guards of every patch: it adds what is lacking, and replaces nothing. The next plan asks a person."""
    plan = pair.plan(snapshot, resources=RESOURCES)
    make_authorities(pair)
    publications = len(plan_rows(plan, "publications", *WRITTEN_ACTIONS))
    pair.apply(plan, selection=Selection(limit=publications))
    made = record_named(records_of(pair, "authorities"), WITH_VARIANTS)
    pair.call("PATCH", f"authorities/{made['id']}", {"variants": ["Bengio"]})
    applied = pair.apply(plan)
    assert (applied.failed, applied.lacking.writes) == (0, 1)
    assert record_named(records_of(pair, "authorities"), WITH_VARIANTS)["variants"] == ["Bengio"]
    with pair.migration() as migration:
        [finding] = [one for one in migration.verify(plan).findings if not one.lacking]
    assert (finding.code, finding.field) == ("differing", "variants")
    [conflict] = plan_rows(pair.plan(snapshot, resources=RESOURCES), "authorities", Action.CONFLICT)
    assert (conflict.target_id, conflict.reason) == (made["id"], "fields_differ")
