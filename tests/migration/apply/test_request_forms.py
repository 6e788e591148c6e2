"""The forms of requests: those that remove members from lists, which the target's description says, and changes in JSON:API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from pipelines.migration.apply.request_forms import RequestForms
from pipelines.migration.model.actions import Action
from pipelines.migration.model.field_mapping import FieldMapping
from pipelines.migration.model.journal import Journal
from pipelines.service.clock import SystemClock
from pipelines.shapes.model import Description, FieldSchema, PayloadSchema, ResourceSchema
from pipelines.state.local import LocalState
from tests.migration.plan.test_mapping import file_of, learner_of, text_of
from tests.migration.sample_plans import TYPES, row


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal(LocalState(tmp_path / "state.db"), "https://a", "https://b", SystemClock())) as opened:
        yield opened


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
    journal: Journal, operation: str, entry: list[str], *, is_taken: bool
) -> None:
    """The number of an entry is no number of a publication."""
    field = FieldMapping(leads_to="publications", many=True, post="publications publication_id")
    types = {"collections": msgspec.structs.replace(TYPES["collections"], fields={"publication_ids": field})}
    lists = {"/collections/{}/publications": entry}
    described = Description(address="", learned_at="", operations={operation: []}, lists=lists)
    form = RequestForms("new", {}, described, types, journal, lambda _resource, _number: None)
    assert form.removes("collections", "publication_ids") is is_taken


@pytest.mark.parametrize("described", [(), ("type", "attributes"), ("type", "id", "attributes")])
def test_a_change_in_json_api_names_the_type_and_the_id_of_the_record(
    tmp_path: Path, journal: Journal, described: tuple[str, ...]
) -> None:
    """By the form of the records, as far as a description takes them; the mapping file has it in a line, which is followed."""
    fields = {name: FieldSchema() for name in described}
    schema = ResourceSchema(change=PayloadSchema(fields) if fields else None)
    description = Description(address="", learned_at="", resources={"tasks": schema})
    names = {"type", "id"} & {*(described or ("type", "id"))}
    record = {"id": 7, "type": "to-dos", "attributes": {"title": "A"}}
    learner = learner_of(tmp_path, [record], ResourceSchema())
    text, assumed = text_of([learner]), 'requests = { method = "PATCH", wrapped_in = "data", record_type = "to-dos" }'
    assert assumed in text
    for line, kind in ((assumed, "to-dos"), (assumed.replace("to-dos", "tasks"), "tasks")):
        followed = file_of(text.replace(assumed, line)).follow(learner.type)
        forms = RequestForms("new", {}, description, {"tasks": followed}, journal, lambda _resource, _number: record)
        request = forms.change(row(1, Action.PATCH, resource="tasks"), 7, {"attributes/title": "B"})
        named = {name: value for name, value in {"type": kind, "id": "7"}.items() if name in names}
        assert request.body == {"data": {**named, "attributes": {"title": "B"}}}
