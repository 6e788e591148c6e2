"""How the target is asked to merge, to sign an upload, and where it names a new record: by its description, where that is clear."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.migration.mapping.learned_fields import learn_from_shapes
from pipelines.migration.model.resource_types import RESOURCE_TYPES, MergeRequest, ResourceType
from pipelines.records.files import ASSET, COVER
from pipelines.records.shapes.observation import RecordShape
from pipelines.shapes.description import read_description
from pipelines.shapes.model import Description, ResourceSchema

ASSUMED = MergeRequest("authorities/{id}/merge")


def read(paths: dict[str, Any]) -> Description:
    """A description with these paths."""
    document = {"openapi": "3.0.0", "paths": paths}
    return read_description(json.dumps(document).encode(), address="a")


def content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def merged_by(method: str, path: str, body: dict[str, Any]) -> Description:
    schema = {"type": "object", "properties": body, "required": [*body]}
    return read(
        {"/authorities": {"get": {"responses": {}}}, path: {method: {"requestBody": content(schema), "responses": {}}}}
    )


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
    merges = {resource: learned(resource, merged_by(method, path, body)).merge for resource in RESOURCE_TYPES}
    assert merges.pop("authorities") == expected
    assert merges.pop("locations") == MergeRequest("hard_copies/locations/{id}/merge"), "nothing describes it"
    assert {*merges.values()} == {None}


ASSETS, COVERS, POSTED = "/assets/presign", "/publications/cover/presign", "/covers/presigned"


@pytest.mark.parametrize(
    ("operations", "paths"),
    [
        ([ASSETS, COVERS], {}),
        ([ASSETS, COVERS, "/covers/presign"], {}),
        ([ASSETS, "/covers/presign"], {COVER: "covers/presign"}),
        (["/uploads/presign_asset", "/covers/presign"], {ASSET: "uploads/presign_asset", COVER: "covers/presign"}),
        ([ASSETS, "/covers/presign", "/cover/presigned"], {}),
        ([ASSETS, "/publications/{id}/cover/presign"], {}),
        ([POSTED], {}),
        (
            ["/uploads/sign?filename&type", "/users/avatar/presign?filename&type", "/search?type"],
            {ASSET: "uploads/sign"},
        ),
        (["/uploads/sign?filename&type", "/signed?filename&type"], {}),
    ],
)
def test_another_path_that_signs_uploads_is_taken_where_it_is_the_only_one(
    operations: list[str], paths: dict[str, str]
) -> None:
    """Only a GET signs."""
    described = {}
    for operation in ("/publications", *operations):
        path, _, names = operation.partition("?")
        parameters = [{"in": "query", "name": name} for name in names.split("&")]
        described[path] = {"post" if path == POSTED else "get": {"responses": {}, "parameters": parameters}}
    description = read(described)
    assert description.resources.get("publications", ResourceSchema()).presign == paths


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        (_object(id=ID, name={"type": "string"}), ""),
        (_object(created_by=_object(id=ID)), ""),
        (_object(hard_copy_id=ID), "hard_copy_id"),
        (_object(result=_object(hard_copy_id=ID), user=_object(user_id=ID)), "result/hard_copy_id"),
        (_object(hard_copy=_object(id=ID), user=_object(id=ID)), ""),
        (_object(number=ID), ""),
        ({}, ""),
    ],
)
def test_where_the_id_of_an_answer_is(answer: dict[str, Any], path: str) -> None:
    body = content(_object(barcode={"type": "string"}))
    responses = {"201": {"description": "", **content(answer)}}
    description = read({"/hard_copies": {"post": {"requestBody": body, "responses": responses}}})
    assert description.resources["hard_copies"].answer_id == path


@pytest.mark.parametrize("beside", ["/oauth/token", "/api/v2/tasks", "/tasks"])
def test_paths_beside_the_version_are_no_part_of_it(beside: str) -> None:
    """A value of an enumeration is text as in the mapping file."""
    item = {"post": {"requestBody": content(_object(done={"enum": [True, 2.5, "x", None]})), "responses": {}}}
    description = read({"/api/v3/tasks": item, "/api/v3/users": item, beside: item})
    assert [*description.operations] == ["POST /tasks", "POST /users"]
    created = description.resources["tasks"].create
    assert created is not None
    assert created.fields["done"].choices == ["true", "2.5", "x"]
