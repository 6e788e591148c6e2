"""A6: a service without a description that takes writes in other forms: PUT instead of PATCH, a key around the record."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from pipelines.migration.apply.request_forms.known_forms import Alternative, KnownForms, Operation, Verdict
from pipelines.migration.apply.run import Selection
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action
from pipelines.migration.model.plan import Plan
from pipelines.service.clock import SystemClock
from pipelines.state.local import LocalState
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.chaos import Applies, KillingWay
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import Records, plan_rows, records_of
from tests.migration.other_resources.test_staleness import FIELDS, plan_changes

RESOURCES = ["collections"]
SHELF = {"shelf": {"schema": {"type": ["string", "null"]}, "seed": ["left", "right"]}}
"""A field that the source does not have."""

FREE = {**FIELDS, "name": {"from": "name"}}
"""Collections that may lack their name."""


@pytest.fixture(scope="module")
def applies() -> Iterator[Applies]:
    """Applies in processes of their own."""
    processes = Applies()
    yield processes
    processes.close()


def undescribed(
    pair: LibraryPair, fields: dict[str, Any], variations: dict[str, str] | None = None, **form: Any
) -> None:
    """Give the collections of the target these fields and forms, and take its description away."""
    reshape(pair, "missing", fields, variations, **form)


def reshape(
    pair: LibraryPair, description: str, fields: dict[str, Any], variations: dict[str, str] | None = None, **form: Any
) -> None:
    """Give the collections of the target these fields and forms."""
    shapes = {"description": description, "resources": {"collections": {"fields": fields, **form}}}
    pair.sandbox.change(pair.target, shapes=shapes, variations=variations)


def plan_creates(pair: LibraryPair, snapshot: Snapshot) -> tuple[Plan, int]:
    """Returns a plan that creates every collection, and their number."""
    for number in records_of(pair, "collections"):
        pair.call("DELETE", f"collections/{number}")
    plan = pair.plan(snapshot, resources=RESOURCES)
    creates = len(plan_rows(plan, "collections", Action.CREATE))
    assert creates > 1
    return plan, creates


def verdict(pair: LibraryPair, operation: Operation, alternative: Alternative) -> str | None:
    """What the data folder knows of the target."""
    data = pair.config.parent / "library-data" / "state.db"
    address = next(
        line for line in pair.config.read_text().split("[tenants.new]")[1].splitlines() if "base_url" in line
    )
    with closing(KnownForms(LocalState(data), address.split('"')[1], SystemClock())) as known:
        return known.verdict("collections", operation, alternative)


def sent(pair: LibraryPair) -> list[str]:
    """The methods of the writes of collections, without the deletions of a test."""
    return [method for method, path in pair.writes() if "/collections" in path and method != "DELETE"]


def check_whole(pair: LibraryPair, snapshot: Snapshot, plan: Plan) -> None:
    """Nothing is lost and nothing is there twice."""
    with pair.migration() as migration:
        status = migration.status(plan)
        assert (status.written, status.unanswered, status.parked) == (True, 0, 0)
        assert migration.verify(plan).as_planned
    found = [one["name"] for one in records_of(pair, "collections").values()]
    assert len(found) == len({*found})
    assert {*pair.plan(snapshot, resources=RESOURCES).facts.counts["collections"]} == {"unchanged"}


def changed(before: Records, planned: dict[int, str]) -> Records:
    """The records with the planned descriptions, and nothing else changed."""
    return {number: {**one, "description": planned.get(number, one["description"])} for number, one in before.items()}


def test_a_put_sends_the_whole_record_and_is_known_from_then_on(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The description of a collection is changed; what the source does not know of it stays. Undo takes the same way."""
    pair.apply(pair.plan(snapshot, resources=RESOURCES))
    undescribed(pair, {**FIELDS, **SHELF})
    plan, planned = plan_changes(pair, snapshot)
    before = records_of(pair, "collections")
    undescribed(pair, {**FIELDS, **SHELF}, verb="PUT", replaces=True)
    made = len(sent(pair))
    applied = pair.apply(plan).applied
    assert (applied.patched, applied.failed, applied.failures) == (2, 0, [])
    assert sorted(sent(pair)[made:]) == ["PATCH", "PUT", "PUT"], "PATCH is tried once"
    assert records_of(pair, "collections") == changed(before, planned)
    assert verdict(pair, Operation.CHANGE, Alternative.PUT) == Verdict.TAKEN
    check_whole(pair, snapshot, plan)
    made = len(sent(pair))
    with pair.migration() as migration:
        assert migration.undo(plan, really=True).left == 0
    assert sent(pair)[made:] == ["PUT", "PUT"]
    assert records_of(pair, "collections") == before


def test_a_described_put_keeps_what_the_source_does_not_know(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Its description says that a record has a shelf; the plan does not write it, and a PUT without it would empty it."""
    pair.apply(pair.plan(snapshot, resources=RESOURCES))
    reshape(pair, "follows", {**FIELDS, **SHELF})
    plan_changes(pair, snapshot)
    reshape(pair, "follows", {**FIELDS, **SHELF}, verb="PUT", replaces=True)
    plan = pair.plan(snapshot, resources=RESOURCES, overwrite=True)
    before, made = records_of(pair, "collections"), len(sent(pair))
    assert pair.apply(plan).applied.failed == 0
    assert sent(pair)[made:] == ["PUT", "PUT"]
    planned = {
        row.existing_target_id: row.payload["description"] for row in plan_rows(plan, "collections", Action.PATCH)
    }
    assert records_of(pair, "collections") == changed(before, planned)


@pytest.mark.long
def test_a_key_around_the_record_is_tried_once_and_known_from_then_on(pair: LibraryPair, snapshot: Snapshot) -> None:
    undescribed(pair, FIELDS, wrapped="collection")
    plan, creates = plan_creates(pair, snapshot)
    publications = len(plan_rows(plan, "publications", *WRITTEN_ACTIONS))
    assert pair.apply(plan, selection=Selection(limit=publications + 1)).applied.failed == 0
    assert sent(pair) == ["POST", "POST"]
    assert verdict(pair, Operation.CREATE, Alternative.WRAPPED) == Verdict.TAKEN
    assert pair.apply(plan).applied.failed == 0
    assert len(sent(pair)) == creates + 1, "another run sends no bare body"
    check_whole(pair, snapshot, plan)


def test_a_record_that_was_created_empty_is_filled(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The service said that the key is missing, and then ignored it: the record is known, filled, and the key is never sent again."""
    undescribed(pair, FREE, {"unknown_fields": "ignored"})
    plan, creates = plan_creates(pair, snapshot)
    pair.sandbox.fault(
        "status", pair.target, method="POST", path="/collections", status=400, code="collection is missing"
    )
    applied = pair.apply(plan).applied
    assert (applied.failed, applied.failures) == (0, [])
    assert sorted(sent(pair)) == ["PATCH", *["POST"] * (creates + 1)]
    assert verdict(pair, Operation.CREATE, Alternative.WRAPPED) == Verdict.REFUSED
    check_whole(pair, snapshot, plan)


@pytest.mark.long
def test_a_record_that_stays_empty_is_named(pair: LibraryPair, snapshot: Snapshot) -> None:
    undescribed(pair, FREE, {"unknown_fields": "ignored"})
    plan, _creates = plan_creates(pair, snapshot)
    pair.sandbox.fault(
        "status", pair.target, method="POST", path="/collections", status=400, code="collection is missing"
    )
    pair.sandbox.fault("status", pair.target, method="PATCH", path="/collections", status=422)
    applied = pair.apply(plan).applied
    [failure] = applied.failures
    assert "was created empty" in failure.problem
    empty = [number for number, one in records_of(pair, "collections").items() if one["name"] == "Unnamed"]
    with pair.migration() as migration:
        found = migration.verify(plan).findings
        assert {one.target_id for one in found if one.resource == "collections"} == {*empty}
        assert any("was created empty" in one.problem for one in migration.status(plan).findings)
    assert pair.apply(plan).applied.created == 0
    later = pair.plan(snapshot, resources=RESOURCES)
    assert [row.target_id for row in plan_rows(later, "collections", Action.PATCH)] == empty, "nobody edited it"
    assert pair.apply(later).applied.failed == 0
    check_whole(pair, snapshot, later)


@pytest.mark.parametrize("edited", [False, True])
def test_a_record_that_stays_empty_is_deleted_by_undo_unless_people_filled_it(
    pair: LibraryPair, snapshot: Snapshot, *, edited: bool
) -> None:
    undescribed(pair, FREE, {"unknown_fields": "ignored"})
    plan, _creates = plan_creates(pair, snapshot)
    pair.sandbox.fault(
        "status", pair.target, method="POST", path="/collections", status=400, code="collection is missing"
    )
    pair.sandbox.fault("status", pair.target, method="PATCH", path="/collections", status=422)
    pair.apply(plan)
    [empty] = [number for number, one in records_of(pair, "collections").items() if one["name"] == "Unnamed"]
    if edited:
        pair.call("PATCH", f"collections/{empty}", {"name": "Named by people"})
    with pair.migration() as migration:
        result = migration.undo(plan, really=True)
    assert result.left == int(edited)
    assert {*records_of(pair, "collections")} == ({empty} if edited else set())
    assert not edited or "people changed name since" in str(result.findings)


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("status", {"status": 500, "when": "after", "code": "collection is missing"}),
        ("reset", {"when": "before"}),
        ("status", {"status": 404, "code": "RecordNotFound"}),
        ("status", {"status": 422, "code": "collection: name is missing"}),
    ],
    ids=["500", "reset", "not found", "field"],
)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_nothing_else_is_a_reason_to_try_another_form(
    pair: LibraryPair, snapshot: Snapshot, kind: str, details: dict[str, Any], method: str
) -> None:
    """An unclear answer, a record that is gone, a field that is missing."""
    undescribed(pair, FIELDS)
    plan, _creates = plan_creates(pair, snapshot)
    if method == "PATCH":
        pair.apply(plan)
        plan, _planned = plan_changes(pair, snapshot)
    pair.sandbox.fault(kind, pair.target, method=method, path="/collections", **details)
    pair.apply(plan)
    assert "PUT" not in sent(pair)
    for operation in Operation:
        for alternative in Alternative:
            assert verdict(pair, operation, alternative) is None


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_killed_within_a_put_loses_nothing(pair: LibraryPair, applies: Applies, when: str) -> None:
    with KillingWay(pair.sandbox.url) as way:
        through = pair.through_proxy(way.url)
        pair.sandbox.change(pair.target, oauth={"access_token_seconds": 3600})
        snapshot = through.newest()
        through.apply(through.plan(snapshot, resources=RESOURCES))
        undescribed(pair, {**FIELDS, **SHELF})
        plan, planned = plan_changes(through, snapshot)
        before = records_of(pair, "collections")
        undescribed(pair, {**FIELDS, **SHELF}, verb="PUT", replaces=True)
        way.kill_at(applies, "PUT", "/collections/", when)
        assert applies.run(through.config, plan.name) == -signal.SIGKILL
        assert through.apply(plan).applied.failed == 0
        assert records_of(pair, "collections") == changed(before, planned)
        assert verdict(through, Operation.CHANGE, Alternative.PUT) == Verdict.TAKEN
        check_whole(through, snapshot, plan)


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_killed_within_the_first_create_with_a_key_makes_nothing_twice(
    pair: LibraryPair, applies: Applies, when: str
) -> None:
    with KillingWay(pair.sandbox.url) as way:
        through = pair.through_proxy(way.url)
        pair.sandbox.change(pair.target, oauth={"access_token_seconds": 3600})
        undescribed(pair, FIELDS, wrapped="collection")
        snapshot = through.newest()
        plan, _creates = plan_creates(through, snapshot)
        way.kill_at(applies, "POST", "/collections$", when, body=b'{"collection": {')
        assert applies.run(through.config, plan.name) == -signal.SIGKILL
        assert through.apply(plan).applied.failed == 0
        check_whole(through, snapshot, plan)


@pytest.mark.long
def test_a_process_killed_after_it_made_an_empty_record_leaves_that_to_a_person(
    pair: LibraryPair, applies: Applies
) -> None:
    """It is named, and no second one is made; once a person deleted it, the next apply completes."""
    with KillingWay(pair.sandbox.url) as way:
        through = pair.through_proxy(way.url)
        pair.sandbox.change(pair.target, oauth={"access_token_seconds": 3600})
        undescribed(pair, FREE, {"unknown_fields": "ignored"})
        snapshot = through.newest()
        plan, _creates = plan_creates(through, snapshot)
        pair.sandbox.fault(
            "status", pair.target, method="POST", path="/collections", status=400, code="collection is missing"
        )
        way.kill_at(applies, "POST", "/collections$", "after", body=b'{"collection": {')
        assert applies.run(through.config, plan.name) == -signal.SIGKILL
        [failure] = through.apply(plan).applied.failures
        [empty] = [number for number, one in records_of(pair, "collections").items() if one["name"] == "Unnamed"]
        assert f"the target now has {empty}" in failure.problem
        pair.call("DELETE", f"collections/{empty}")
        assert through.apply(plan).applied.failed == 0
        check_whole(through, snapshot, plan)
