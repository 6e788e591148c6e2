"""A new record is read back where no description says what the target keeps, in whatever way a service shows one record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipelines.errors import RefusedError
from pipelines.migration.apply.unproved_fields import FirstRecords, UnprovedFields
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import ResourceType, Source
from pipelines.service.client import LibraryClient
from tests.migration.sample_plans import row
from tests.service.scripted import Answer, Received, Script, ScriptedServer

KEPT = {"id": 7, "name": "Ada"}
TYPE = ResourceType(
    "authorities", ("name", "notes"), (("name",),), source=Source.RECORDS, unproved=("notes",), wrapped_in="authority"
)


@pytest.mark.parametrize(
    "shown",
    [
        Answer(KEPT),
        Answer({"authority": KEPT}),
        Answer({"data": KEPT}),
        Answer({"records": [KEPT]}),
        Answer([KEPT]),
        Answer({"id": 8, "name": "Grace", "notes": "of another record"}),
        Answer(b"<html>", headers={"content-type": "text/html"}),
        Answer({"error": {"code": "RecordNotFound", "message": "no such route"}}, status=404),
        Answer({"error": {"code": "Forbidden", "message": "not for you"}}, status=403),
    ],
    ids=[
        "record",
        "wrapped",
        "in another key",
        "page",
        "list",
        "another record",
        "web page",
        "no address",
        "forbidden",
    ],
)
def test_the_record_counts_and_no_other_answer_stops_the_apply(
    serve: Callable[[Script], ScriptedServer], client_for: Callable[..., LibraryClient], shown: Answer
) -> None:
    def script(request: Received) -> Answer:
        if request.path.endswith("/authorities/7"):
            return shown
        return Answer({"records": [{"id": 1}, KEPT]}, headers={"X-Total": "2"})

    first = FirstRecords(client_for(serve(script).url))
    payload: dict[str, Any] = {"name": "Ada", "notes": "a note"}
    new = row(1, Action.CREATE, resource="authorities", payload=payload, type=TYPE)
    assert first.as_kept(new, {"id": 7}) == {**KEPT, "notes": None}


def test_empty_values_are_left_out_before_anything_else_and_the_target_is_asked_once() -> None:
    """They say the same as null. What was refused without them, too, was refused for another reason."""
    unproved, problems = UnprovedFields(), list[str]()
    refusal = RefusedError("notes is too short", status=422)

    def new(number: int) -> PlanRow:
        payload = {"name": "Ada", "notes": "", "variants": [], "rank": 0}
        return row(number, Action.CREATE, resource="authorities", payload=payload, type=TYPE)

    reduced = unproved.without(new(1), refusal, problems)
    assert reduced is not None
    assert reduced.payload == {"name": "Ada", "rank": 0}
    assert unproved.reduce(new(2), problems).payload == new(2).payload, "it may have been refused for another reason"
    assert unproved.without(reduced, refusal, problems) is None
    assert unproved.without(new(3), refusal, problems) is not None
    unproved.confirm(new(3), refusal)
    assert unproved.reduce(new(4), problems).payload == {"name": "Ada", "rank": 0}
    assert problems == []
