"""Records of the target with one name: reported, merged where a person decided it, journalled, verified, and never split by undo."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from pipelines.errors import ConfigurationError, StopError
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import CONFLICTS, HTML, Plan
from pipelines.migration.model.resource_types import LOCATIONS
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import WITH_VARIANTS, plan_rows, records_of

RESOURCES = ["authorities"]


def make_twin(pair: LibraryPair, name: str, **fields: Any) -> int:
    """Create another authority of the target."""
    return int(pair.call("POST", "authorities", {"name": name, "kind": "person", **fields})["id"])


def lines(plan: Plan) -> dict[tuple[str, int], list[str]]:
    """Resource and id in the source → its line of conflicts.tsv."""
    with plan.path(CONFLICTS).open(encoding="utf-8", newline="") as file:
        return {(line[0], int(line[1])): line for line in list(csv.reader(file, delimiter="\t"))[1:]}


def decide(plan: Plan, resource: str, source_id: int, decision: str) -> None:
    """Write a decision into conflicts.tsv."""
    with plan.path(CONFLICTS).open(encoding="utf-8", newline="") as file:
        table = list(csv.reader(file, delimiter="\t"))
    [line] = [line for line in table if line[:2] == [resource, str(source_id)]]
    line[-1] = decision
    with plan.path(CONFLICTS).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(table)


def merges(pair: LibraryPair) -> list[tuple[str, str]]:
    """Merges that were sent to the target."""
    return [write for write in pair.writes() if "merge" in write[1]]


def with_twins(pair: LibraryPair, snapshot: Snapshot) -> tuple[Plan, int, list[int]]:
    """Returns a plan in which an authority that was moved has two twins; its id in the source, and the ids of all three."""
    pair.apply(pair.plan(snapshot, resources=RESOURCES))
    twins = [make_twin(pair, WITH_VARIANTS.upper()), make_twin(pair, WITH_VARIANTS)]
    plan = pair.plan(snapshot, resources=RESOURCES)
    [row] = [row for row in plan_rows(plan, "authorities") if row.reason == "twins"]
    assert (row.action, row.candidates) == (Action.UNCHANGED, twins)
    return plan, row.source_id, [row.existing_target_id, *twins]


@pytest.mark.long
def test_a_merge_is_proposed_and_sent_once_a_person_decided_it(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The record that the migration wrote remains; verify proves it, the next plan is empty, and undo says what it cannot split."""
    plan, source_id, ids = with_twins(pair, snapshot)
    assert plan.facts.empty, "nothing is merged without a decision"
    [note] = [note for note in plan.facts.notes if "more than once" in note]
    assert "conflicts.tsv has a line for each" in note
    line = lines(plan)["authorities", source_id]
    assert line[4] == " or ".join(f"#{number}" for number in ids)
    assert "Write merge" in line[3]
    decide(plan, "authorities", source_id, "merge")

    plan = pair.plan(snapshot, resources=RESOURCES)
    [row] = plan_rows(plan, "authorities", Action.MERGE)
    assert (row.target_id, row.candidates) == (ids[0], ids[1:])
    assert (plan.facts.writes, plan.facts.counts["authorities"]["merge"]) == (1, 1)
    assert "no undo can split" in plan.path(HTML).read_text("utf-8")
    assert lines(plan)["authorities", source_id][-1] == "merge", "the decision stays until it is applied"
    before = pair.requests()
    result = pair.apply(plan)
    assert (result.merged, result.failed) == (2, 0)
    assert pair.requests() - before == result.requests == plan.facts.requests
    assert {*ids} & {*records_of(pair, "authorities")} == {ids[0]}
    assert merges(pair) == [("PATCH", f"/api/v3/authorities/{number}/merge") for number in ids[1:]]
    assert pair.verify(plan).as_planned
    status = pair.status(plan)
    assert (status.done["merge"], status.written) == (2, True)
    assert pair.apply(plan).merged == 0

    later = pair.plan(snapshot, resources=RESOURCES)
    assert {*later.facts.counts["authorities"]} == {"unchanged"}, (
        "what the merge added to the record is no edit of people"
    )
    assert ("authorities", source_id) not in lines(later), "a decision to merge counts once"
    for undone in (pair.undo(plan), pair.undo(plan, really=True)):
        [left] = undone.findings
        assert (undone.left, left.target_id) == (1, ids[0])
        assert f"record {ids[1]} was merged into it, and no undo can split them" in left.problem


def decided(pair: LibraryPair, snapshot: Snapshot) -> tuple[Plan, int, list[int]]:
    """Returns a plan that merges an authority with its two twins; its id in the source, and the ids of all three."""
    plan, source_id, ids = with_twins(pair, snapshot)
    decide(plan, "authorities", source_id, "merge")
    return pair.plan(snapshot, resources=RESOURCES), source_id, ids


def check_merged(pair: LibraryPair, snapshot: Snapshot, plan: Plan, ids: list[int]) -> None:
    assert {*ids} & {*records_of(pair, "authorities")} == {ids[0]}
    status = pair.status(plan)
    assert (status.written, status.unanswered, status.parked, status.refused) == (True, 0, 0, 0)
    assert pair.verify(plan).as_planned
    assert {*pair.plan(snapshot, resources=RESOURCES).facts.counts["authorities"]} == {"unchanged"}


@pytest.mark.long
@pytest.mark.parametrize("fault", [{"fault": "reset"}, {"fault": "cut"}])
def test_a_merge_with_a_lost_response_is_looked_up_in_the_list(
    pair: LibraryPair, snapshot: Snapshot, fault: dict[str, Any]
) -> None:
    """I8: the repetition finds no such record; the list says that it was merged."""
    plan, _source_id, ids = decided(pair, snapshot)
    kind = fault.pop("fault")
    pair.sandbox.fault(kind, pair.target, path="/merge", **fault, **({} if kind == "cut" else {"when": "after"}))
    applied = pair.apply(plan)
    assert (applied.merged, applied.failed) == (2, 0)
    check_merged(pair, snapshot, plan, ids)


@pytest.mark.long
def test_a_refused_merge_is_named_and_may_be_tried_again(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan, _source_id, ids = decided(pair, snapshot)
    pair.sandbox.fault("status", pair.target, path="/merge", status=422)
    applied = pair.apply(plan)
    assert (applied.merged, applied.failed) == (1, 1)
    assert {*ids} <= {*records_of(pair, "authorities"), ids[2]}
    [finding] = [finding for finding in pair.verify(plan).findings if finding.code == "duplicated"]
    assert finding.target_id == ids[1]
    assert pair.apply(plan).merged == 1
    check_merged(pair, snapshot, plan, ids)


def reshape(pair: LibraryPair, description: str, **merge: str) -> None:
    """Give the merge of the target this form."""
    native = {name: {"from": name} for name in ("name", "kind", "variants")}
    shape = {"fields": native, "merge": merge} if merge else {"fields": native}
    pair.sandbox.reshape({"authorities": shape}, pair.target, description=description)


def test_a_merge_that_nothing_describes_is_as_the_operator_says(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The assumed form is refused with the setting that says another; no other is tried. With it the same plan merges."""
    plan, source_id, ids = with_twins(pair, snapshot)
    reshape(pair, "missing", path="/authorities/{id}/merges", method="POST", field="target_id")
    decide(plan, "authorities", source_id, "merge")
    plan = pair.plan(snapshot, resources=RESOURCES)
    applied = pair.apply(plan)
    assert (applied.merged, applied.failed) == (0, 1)
    shown = 'merge = "authorities/{id}/merge", merge_method = "PATCH", merge_field = "into_id"'
    assert f"`[tenants.new.requests.authorities]` {shown}" in applied.failures[0].problem
    assert {method for method, _path in merges(pair)} == {"PATCH"}
    pair.configure("[tenants.new.requests.authorities]")
    for line in ('merge = "authorities/{id}/merges"', 'merge_method = "POST"', 'merge_field = "target_id"'):
        pair.configure(line)
    sent = len(merges(pair))
    applied = pair.apply(plan)
    assert (applied.merged, applied.failures) == (2, [])
    assert merges(pair)[sent:] == [("POST", f"/api/v3/authorities/{number}/merges") for number in ids[1:]]
    check_merged(pair, snapshot, plan, ids)


@pytest.mark.long
def test_a_merge_that_only_says_success_ends_all_merges(pair: LibraryPair, snapshot: Snapshot) -> None:
    """A merge cannot be taken back: where the list does not show its effect, no further one is sent."""
    plan, source_id, ids = with_twins(pair, snapshot)
    reshape(pair, "missing")
    decide(plan, "authorities", source_id, "merge")
    plan = pair.plan(snapshot, resources=RESOURCES)
    pair.sandbox.fault("status", pair.target, path="/merge", status=200)
    applied = pair.apply(plan)
    assert (applied.merged, applied.failed) == (0, 1)
    assert f"authority {ids[1]} was to be merged into {ids[0]}" in applied.failures[0].problem
    assert merges(pair) == [("PATCH", f"/api/v3/authorities/{ids[1]}/merge")]
    assert {*ids} <= {*records_of(pair, "authorities")}
    assert pair.apply(plan).merged == 2


@pytest.mark.long
def test_a_plan_whose_records_changed_meanwhile_merges_nothing(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan, _source_id, ids = decided(pair, snapshot)
    pair.call("PATCH", f"authorities/{ids[2]}", {"name": "Somebody else"})
    with pytest.raises(StopError, match=f"{ids[1]}, {ids[2]} were to be merged into {ids[0]}"):
        pair.apply(plan)
    assert merges(pair) == []


@pytest.mark.long
def test_only_authorities_and_locations_and_only_twins_are_merged(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan, source_id, ids = with_twins(pair, snapshot)
    decide(plan, "authorities", source_id, "merge 999999")
    later = pair.plan(snapshot, resources=RESOURCES)
    assert "merge" not in later.facts.counts["authorities"]
    other_id = min({*records_of(pair, "authorities")} - {*ids})
    decide(later, "authorities", source_id, f"merge {other_id}")
    later = pair.plan(snapshot, resources=RESOURCES)
    [row] = plan_rows(later, "authorities", Action.CONFLICT)
    assert (row.source_id, row.reason) == (source_id, "merge_into_another")
    decide(later, "authorities", source_id, "merge")
    reshape(pair, "follows", path="/authorities/{id}/merge", method="PATCH", field="other_id")
    later = pair.plan(snapshot, resources=RESOURCES)
    [row] = plan_rows(later, "authorities", Action.CONFLICT)
    assert (row.source_id, row.reason) == (source_id, "merge_unclear"), "the description does not say which remains"
    assert "by hand" in lines(later)["authorities", source_id][3]
    table = later.path(CONFLICTS)
    text = table.read_text("utf-8")
    table.write_text(f"{text}collections\t1\t\t\t\t\tmerge\n", "utf-8")
    with pytest.raises(ConfigurationError, match="only authorities and locations can be merged"):
        pair.plan(snapshot, resources=RESOURCES)
    assert {*ids} <= {*records_of(pair, "authorities")}


@pytest.mark.long
def test_hard_copies_follow_the_merged_location_in_the_same_plan(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Those of the target move with it, and those that are created stand at the location that remains."""
    [copy, *_] = records_of(pair, "hard_copies").values()
    location = records_of(pair, "locations")[copy["location_id"]]
    twin = pair.sandbox.control("POST", "locations", {"tenant": pair.target, "name": location["name"]})["id"]
    pair.call("PATCH", f"hard_copies/{copy['id']}", {"location_id": twin})
    plan = pair.plan(snapshot, resources=["hard_copies"])
    [conflict] = plan_rows(plan, LOCATIONS, Action.CONFLICT)
    assert (conflict.reason, conflict.candidates) == ("several_targets", [location["id"], twin])
    decide(plan, LOCATIONS, conflict.source_id, "merge")
    plan = pair.plan(snapshot, resources=["hard_copies"])
    assert plan_rows(plan, "hard_copies", Action.CONFLICT) == []
    assert pair.apply(plan).failed == 0
    assert twin not in records_of(pair, "locations")
    copies = records_of(pair, "hard_copies")
    assert copies[copy["id"]]["location_id"] == location["id"]
    assert len([hard_copy for hard_copy in copies.values() if hard_copy["location_id"] == location["id"]]) > 1
    assert pair.verify(plan).as_planned
    assert pair.plan(snapshot, resources=["hard_copies"]).facts.empty
