"""How a merge is requested: by the target's description, else as assumed, and never where the description is not clear."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.migration.model.resource_types import RESOURCE_TYPES, MergeRequest, ResourceType
from pipelines.migration.plan.learned_types import learn_from_shapes
from pipelines.records.shapes.observation import RecordShape
from pipelines.shapes.description import read_description
from pipelines.shapes.model import Description, ResourceSchema

ASSUMED = MergeRequest("authorities/{id}/merge")


def described(method: str, path: str, body: dict[str, Any]) -> Description:
    schema = {"type": "object", "properties": body, "required": [*body]}
    operation = {"requestBody": {"content": {"application/json": {"schema": schema}}}, "responses": {}}
    document = {"openapi": "3.0.0", "paths": {"/authorities": {"get": {"responses": {}}}, path: {method: operation}}}
    return read_description(json.dumps(document).encode(), address="a", learned_at="now")


def learned(resource: str, description: Description) -> ResourceType:
    schema = description.resources.get(resource, ResourceSchema())
    return learn_from_shapes(RESOURCE_TYPES[resource], RecordShape(records=1), RecordShape(), schema)


ID = {"type": "integer"}


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        (
            "post",
            "/authorities/{id}/merges",
            {"target_id": ID},
            MergeRequest("authorities/{id}/merges", "POST", "target_id", described=True),
        ),
        (
            "patch",
            "/authorities/{id}/merge_into",
            {"into": ID},
            MergeRequest("authorities/{id}/merge_into", "PATCH", "into", described=True),
        ),
        ("put", "/authorities/merge/{id}", {"merge_into_id": ID}, None),
        ("patch", "/authorities/{id}/merge", {"source_id": ID}, None),
        ("patch", "/authorities/{id}/merge", {"into_id": ID, "keep_variants": {"type": "boolean"}}, None),
        ("patch", "/authorities/{id}/merge", {}, None),
        ("patch", "/authorities/{id}/emerge/{other}", {"into_id": ID}, ASSUMED),
        ("patch", "/authorities/{id}", {"name": {"type": "string"}}, ASSUMED),
    ],
)
def test_a_described_merge_is_followed_only_where_it_says_which_record_remains(
    method: str, path: str, body: dict[str, Any], expected: MergeRequest | None
) -> None:
    merges = {resource: learned(resource, described(method, path, body)).merge for resource in RESOURCE_TYPES}
    assert merges.pop("authorities") == expected
    assert merges.pop("locations") == MergeRequest("hard_copies/locations/{id}/merge"), "nothing describes it"
    assert {*merges.values()} == {None}
