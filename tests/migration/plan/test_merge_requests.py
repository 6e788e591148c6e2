"""How a merge is requested: by the target's description, else as assumed, and never where the description is not clear."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pipelines.migration.model.resource_types import RESOURCE_TYPES, MergeRequest
from pipelines.migration.plan.merges import merge_request, with_merges
from pipelines.shapes.description import read_description
from pipelines.shapes.model import Description

ASSUMED = MergeRequest()


def described(method: str, path: str, body: dict[str, Any]) -> Description:
    schema = {"type": "object", "properties": body, "required": [*body]}
    operation = {"requestBody": {"content": {"application/json": {"schema": schema}}}, "responses": {}}
    document = {"openapi": "3.0.0", "paths": {"/authorities": {"get": {"responses": {}}}, path: {method: operation}}}
    return read_description(json.dumps(document).encode(), address="a", learned_at="now")


ID = {"type": "integer"}


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        (
            "post",
            "/authorities/{id}/merges",
            {"target_id": ID},
            MergeRequest("POST", "{}/merges", "target_id", described=True),
        ),
        (
            "patch",
            "/authorities/{id}/merge_into",
            {"into": ID},
            MergeRequest("PATCH", "{}/merge_into", "into", described=True),
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
    types = with_merges(RESOURCE_TYPES, described(method, path, body))
    assert types["authorities"].merge == expected
    assert types["locations"].merge == ASSUMED
    assert types["collections"].merge is None


def test_a_merge_that_nothing_describes_is_the_assumed_one() -> None:
    assert merge_request(None) == ASSUMED
    assert with_merges(RESOURCE_TYPES, msgspec.UNSET)["authorities"].merge == ASSUMED
