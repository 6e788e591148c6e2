"""A service without a description that takes writes in other forms, which the operator names: PUT, a key around the record."""

from __future__ import annotations

import json
from http import HTTPStatus

import httpx
import pytest
import yaml

from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import Plan
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.chaos import KillingWay
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import Records, plan_rows, records_of
from tests.migration.other_resources.test_staleness import FIELDS, plan_changes, reshape
from tests.service.scripted import Answer, Received, ScriptedServer, forwarded

RESOURCES = ["collections"]
SHELF = {"shelf": {"schema": {"type": ["string", "null"]}, "seed": ["left", "right"]}}
"""A field that the source does not have."""


def plan_creates(pair: LibraryPair, snapshot: Snapshot) -> tuple[Plan, int]:
    """Returns a plan that creates every collection, and their number."""
    for number in records_of(pair, "collections"):
        pair.call("DELETE", f"collections/{number}")
    plan = pair.plan(snapshot, resources=RESOURCES)
    creates = len(plan_rows(plan, "collections", Action.CREATE))
    assert creates > 1
    return plan, creates


def say(pair: LibraryPair, *lines: str, resource: str = "collections") -> None:
    """Write the operator's table of a resource."""
    pair.configure("\n".join([f"[tenants.new.requests.{resource}]", *lines]))


def sent(pair: LibraryPair) -> list[str]:
    """The methods of the writes of collections, without the deletions of a test."""
    return [method for method, path in pair.writes() if "/collections" in path and method != "DELETE"]


def check_whole(pair: LibraryPair, snapshot: Snapshot, plan: Plan) -> None:
    """Nothing is lost and nothing is there twice."""
    status = pair.status(plan)
    assert (status.written, status.unanswered, status.parked) == (True, 0, 0)
    assert pair.verify(plan).as_planned
    names = [record["name"] for record in records_of(pair, "collections").values()]
    assert len(names) == len({*names})
    assert {*pair.plan(snapshot, resources=RESOURCES).facts.counts["collections"]} == {"unchanged"}


def changed(before: Records, planned: dict[int, str]) -> Records:
    """The records with the planned descriptions, and nothing else changed."""
    return {
        number: {**record, "description": planned.get(number, record["description"])}
        for number, record in before.items()
    }


@pytest.mark.long
def test_a_refused_form_shows_the_setting_and_stops_the_resource(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Three rows fail, the others of the resource are left, and others are written; with the setting, the same plan completes."""
    reshape(pair, "missing", FIELDS)
    for number in records_of(pair, "collections"):
        pair.call("DELETE", f"collections/{number}")
    plan = pair.plan(snapshot, resources=[*RESOURCES, "authorities"])
    creates = len(plan_rows(plan, "collections", Action.CREATE))
    reshape(pair, "missing", FIELDS, wrapped="collection")
    applied = pair.apply(plan)
    failed = [failure for failure in applied.failures if failure.resource == "collections"]
    assert len(failed) == min(3, creates)
    assert applied.created == plan.facts.count(Action.CREATE) - creates
    assert applied.left >= creates - len(failed)
    for failure in failed:
        assert "`[tenants.new.requests.collections]`" in failure.problem
        assert "wrapped_in" in failure.problem
    assert sent(pair) == ["POST"] * len(failed), "no other form is tried"
    say(pair, 'wrapped_in = "collection"')
    applied = pair.apply(plan)
    assert (applied.failed, applied.left, applied.created, applied.lacking.writes) == (0, 0, creates, 0)


@pytest.mark.long
def test_a_refused_method_and_a_refused_address_show_theirs(pair: LibraryPair, snapshot: Snapshot) -> None:
    reshape(pair, "missing", FIELDS)
    plan, _creates = plan_creates(pair, snapshot)
    pair.sandbox.fault("status", pair.target, method="POST", path="/collections$", status=404, code="NoRoute", times=99)
    applied = pair.apply(plan)
    assert all('create = "collections"' in failure.problem for failure in applied.failures)
    pair.sandbox.reset("faults")
    pair.apply(plan)
    plan, _planned = plan_changes(pair, snapshot)
    reshape(pair, "missing", FIELDS, verb="PUT")
    applied = pair.apply(plan)
    assert applied.failures
    assert all('method = "PUT"' in failure.problem for failure in applied.failures)
    say(pair, 'method = "PUT"')
    assert pair.apply(plan).failed == 0
    check_whole(pair, snapshot, plan)


@pytest.mark.long
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_killed_within_a_put_loses_nothing(pair: LibraryPair, moment: str) -> None:
    with KillingWay(pair.sandbox.url) as way:
        through = pair.through_proxy(way.url)
        snapshot = through.newest()
        through.apply(through.plan(snapshot, resources=RESOURCES))
        reshape(pair, "missing", {**FIELDS, **SHELF})
        plan, planned = plan_changes(through, snapshot)
        before = records_of(pair, "collections")
        reshape(pair, "missing", {**FIELDS, **SHELF}, verb="PUT", replaces=True)
        say(through, 'method = "PUT"')
        way.assert_kills(through.config, plan.name, "PUT", "/collections/", moment)
        assert through.apply(plan).failed == 0
        assert records_of(pair, "collections") == changed(before, planned)
        check_whole(through, snapshot, plan)


def test_the_id_of_a_new_record_is_read_where_the_mapping_file_says(pair: LibraryPair) -> None:
    """The description shows where the answer has it."""
    reshape(pair, "follows", FIELDS)
    description = with_answer(httpx.get(f"{pair.sandbox.base_url(pair.target)}/api/v3/swagger.yaml").content)

    def answer(request: Received) -> Answer:
        response, path = forwarded(request, pair.sandbox.url), request.target.partition("?")[0]
        if path.endswith("/v3/swagger.yaml"):
            return Answer(description)
        if request.method == "POST" and path.endswith("/collections") and response.status == HTTPStatus.OK:
            return Answer({"result": {"collection_id": json.loads(response.body)["id"], "user_id": 1}})
        return response

    with ScriptedServer(answer) as server:
        through = pair.through_proxy(server.url)
        snapshot = through.newest()
        assert through.map(snapshot, RESOURCES).resources["collections"].requests == {
            "method": "PATCH",
            "answer_id": "result/collection_id",
        }
        plan, creates = plan_creates(through, snapshot)
        assert through.apply(plan).failed == 0
        assert sent(through).count("POST") == creates
        check_whole(through, snapshot, plan)


def with_answer(description: bytes) -> bytes:
    """A description whose answer to a new collection has nothing of it but its number."""
    document = yaml.safe_load(description)
    number = {"type": "integer"}
    result = {"type": "object", "properties": {"collection_id": number, "user_id": number}}
    schema = {"type": "object", "properties": {"result": result}}
    content = {"application/json": {"schema": schema}}
    document["paths"]["/collections"]["post"]["responses"]["200"] = {"description": "created", "content": content}
    return yaml.safe_dump(document).encode()
