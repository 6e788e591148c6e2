"""The forms of requests: those that remove members from lists, which the target's description says, and changes in JSON:API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipelines.migration.apply.request_forms import RequestForms
from pipelines.migration.model.actions import Action
from pipelines.migration.model.field_mapping import FieldMapping, plain
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.step import Step
from pipelines.service.client import LibraryClient
from pipelines.service.clock import SystemClock
from pipelines.shapes.model import Description, FieldSchema, PayloadSchema, ResourceSchema
from pipelines.state.local import LocalState
from tests.migration.mapping.learning import file_of, learner_of, of_type, text_of
from tests.migration.sample_plans import TYPES, plan_of, row

Forms = Callable[..., RequestForms]


@pytest.fixture
def forms(tmp_path: Path, client_for: Callable[..., LibraryClient]) -> Iterator[Forms]:
    """Returns the forms of a target that describes itself so; the second argument is how its records are moved."""
    with closing(Journal(LocalState(tmp_path / "state.db"), "https://a", "https://b", SystemClock())) as journal:

        def forms_of(described: Description, types: dict[str, ResourceType], record: Any = None) -> RequestForms:
            plan = plan_of(tmp_path / f"plan-{len([*tmp_path.iterdir()])}", description=described)
            step = Step(plan, journal, client_for("https://b"), types, pytest.fail, pytest.fail)
            return RequestForms(step, lambda _resource, _number: record)

        yield forms_of


@pytest.mark.parametrize(
    ("operation", "entry", "is_taken"),
    [
        ("DELETE /collections/{}/publications/{}", ["id", "title"], True),
        ("DELETE /collections/{}/publications/{}", ["publication_id"], True),
        ("DELETE /collections/{}/publications/{}", ["id", "publication_id"], False),
        ("DELETE /collections/{}/publications/{}", [], False),
        ("DELETE /collections/{}", ["id", "title"], False),
    ],
)
def test_a_member_is_removed_where_the_description_leaves_no_doubt_of_its_address(
    forms: Forms, operation: str, entry: list[str], *, is_taken: bool
) -> None:
    """The number of an entry is no number of a publication."""
    field = FieldMapping(leads_to="publications", many=True, post="publications publication_id")
    types = {"collections": msgspec.structs.replace(TYPES["collections"], fields={"publication_ids": field})}
    lists = {"/collections/{}/publications": entry}
    described = Description(address="", operations={operation: []}, lists=lists)
    assert forms(described, types).removes("collections", "publication_ids") is is_taken


@pytest.mark.parametrize("described", [(), ("type", "attributes"), ("type", "id", "attributes")])
def test_a_change_in_json_api_names_the_type_and_the_id_of_the_record(
    tmp_path: Path, forms: Forms, described: tuple[str, ...]
) -> None:
    """By the form of the records, as far as a description takes them; the mapping file has it in a line, which is followed."""
    fields = {name: of_type() for name in described}
    schema = ResourceSchema(change=PayloadSchema(fields) if fields else None)
    description = Description(address="", resources={"tasks": schema})
    names = {"type", "id"} & {*(described or ("type", "id"))}
    record = {"id": 7, "type": "to-dos", "attributes": {"title": "A"}}
    learner = learner_of(tmp_path, [record])
    text, assumed = text_of([learner]), 'requests = { method = "PATCH", wrapped_in = "data", record_type = "to-dos" }'
    assert assumed in text
    for line, kind in ((assumed, "to-dos"), (assumed.replace("to-dos", "tasks"), "tasks")):
        followed = file_of(text.replace(assumed, line)).follow(learner.type)
        of_target = forms(description, {"tasks": followed}, record)
        request = of_target.change(row(1, Action.PATCH, resource="tasks", target_id=7), {"attributes/title": "B"})
        named = {name: value for name, value in {"type": kind, "id": "7"}.items() if name in names}
        assert request.body == {"data": {**named, "attributes": {"title": "B"}}}


def test_a_put_sends_again_what_the_target_has(forms: Forms) -> None:
    """Also of objects of which the mapping knows only a part; without what the target fills itself, as it says."""
    hold = of_type("object", members={"id": FieldSchema(["integer"]), "seen": FieldSchema(["string"], read_only=True)})
    fields = {"holds": of_type("array", entries=hold), "shelf": of_type(), "note": of_type()}
    description = Description(
        address="", resources={"hard_copies": ResourceSchema(change=PayloadSchema(fields, method="PUT"))}
    )
    entries = {"user_id": FieldMapping(leads_to="users"), **plain("note", "at/room")}
    moved = msgspec.structs.replace(
        TYPES["hard_copies"],
        method="PUT",
        fields={"holds": FieldMapping(many=True, entries=entries), **plain("shelf", "note")},
    )
    shelf = {"row": "r1", "link": {"href": "https://example.org/r1"}}
    hold_sent = {"id": 71, "note": "mine", "shelf": "S9", "at": {"room": "east", "row": 2}}
    record = {
        "id": 7,
        "holds": [{**hold_sent, "user_id": {"id": 3, "name": "A"}, "seen": "2026-11-29"}],
        "shelf": shelf,
        "note": "old",
    }
    request = forms(description, {"hard_copies": moved}, record).change(
        row(1, Action.PATCH, resource="hard_copies", target_id=7), {"note": "new"}
    )
    assert request.body == {"holds": [{**hold_sent, "user_id": 3}], "shelf": shelf, "note": "new"}
