"""Other shapes of the resources of version 3 (sandbox/README.md, "Other shapes")."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.sandbox.conftest import Service
from tests.sandbox.shapes import (
    PATHS,
    description,
    description_name,
    fits,
    ok,
    records,
    refused,
    shape,
)
from tests.sandbox.test_control import control

ANYTHING = {"a": [1, {"b": None}, "ü"], "c": 1.5, "": True}

Make = Callable[..., Service]
OpenV3 = Callable[[Service], httpx.Client]


@pytest.mark.long
def test_fields_are_renamed_and_change_their_form(v3: httpx.Client) -> None:
    first = records(v3, "authorities")[1]
    assert list(first) == ["id", "name", "type", "aliases", "notes", "created_at"]
    assert (first["type"], first["aliases"]) == ("Person", [])
    copy = records(v3, "hard_copies")[2]
    assert copy == {
        "id": 2,
        "publication": "3",
        "location": {"id": 2, "name": "Main building, first floor"},
        "bought_at": "2015-01-01T00:00:00Z",
        "shelf": {"row": 1, "side": "left"},
    }
    members = records(v3, "collections")[1]["members"]
    titles = {number: each["title"] for number, each in records(v3, "publications").items()}
    assert members
    assert members == [{"id": each["id"], "name": titles[each["id"]]} for each in members]


def test_what_is_sent_comes_back(v3: httpx.Client) -> None:
    sent = {"publication": "7", "bought_at": "2020-02-29T00:00:00Z", "shelf": {"row": 7, "more": [None]}}
    created = ok(v3.post("/hard_copies", json={**sent, "location": {"id": 3, "name": "ignored"}}))
    assert created == {"id": created["id"], **sent, "location": {"id": 3, "name": "Reading room"}}
    changed = ok(
        v3.patch(f"/hard_copies/{created['id']}", json={"location": None, "bought_at": "2021-03-04T23:59:59+01:00"})
    )
    assert changed == {**created, "location": None, "bought_at": "2021-03-04T00:00:00Z"}
    assert records(v3, "hard_copies")[created["id"]] == changed


def test_a_change_leaves_other_values(v3: httpx.Client) -> None:
    """Seeds and values of fields that a payload does not have stay."""
    before = records(v3, "authorities")[3]
    ok(v3.put("/authorities/3", json={"authority": {"type": "Topic"}}))
    assert records(v3, "authorities")[3] == {**before, "type": "Topic"}
    ok(v3.put("/authorities/3", json={"authority": {"notes": None}}))
    assert records(v3, "authorities")[3] == {**before, "type": "Topic", "notes": None}


def test_payloads_are_wrapped_and_answers_have_the_id_only(v3: httpx.Client) -> None:
    answer = v3.post("/authorities", json={"authority": {"name": "New", "aliases": [{"label": "Newer"}]}})
    number = answer.json()["id"]
    assert (answer.status_code, answer.json()) == (201, {"id": number})
    assert records(v3, "authorities")[number]["aliases"] == [{"label": "Newer"}]
    assert v3.put(f"/authorities/{number}", json={"authority": {"name": "Old"}}).json() == {"id": number}
    assert v3.patch(f"/authorities/{number}", json={"authority": {"name": "Old"}}).status_code == 405
    assert refused(v3.post("/authorities", json={"name": "New"})) == (422, "authority is missing")


def test_a_merge_has_its_own_address(v3: httpx.Client) -> None:
    name = records(v3, "authorities")[2]["name"]
    merged = ok(v3.post("/authorities/2/merges", json={"target_id": 1}))
    assert merged["aliases"] == [{"label": name}]
    assert 2 not in records(v3, "authorities")
    assert v3.patch("/authorities/3/merge", json={"into_id": 1}).status_code == 404
    assert v3.patch("/hard_copies/locations/6/merge", json={"into_id": 2}).status_code == 200


def test_ids_are_written_under_another_name(v3: httpx.Client) -> None:
    created = ok(v3.post("/collections", json={"title": "Two", "member_ids": [2, 1]}))
    assert [each["id"] for each in created["members"]] == [2, 1]
    assert refused(v3.post("/collections", json={"title": "Two", "members": [2]})) == (422, "members is unknown")
    assert v3.post("/collections", json={"title": "Two", "member_ids": [99]}).status_code == 404


def test_publications_have_another_shape_in_version_3_only(shaped: Service, v3: httpx.Client) -> None:
    sent = {"title": "On tides", "publication_date": "2020-05-01", "subtitle": "A study"}
    created = ok(v3.post("/publications", json=sent))
    assert created == {"id": 61, **sent, "authors": []}
    assert ok(v3.get("/publications/61")) == created
    assert ok(v3.get("/publications?year=2020&query=tides"))["records"] == [created]
    assert ok(v3.get("/publications/all?page=3"))["records"][-1] == created
    with shaped.client() as v2:
        assert v2.get("/publications/61").json()["published_on"] == "2020-05-01"
        assert v2.patch("/publications/61", json={"title": "On tides again"}).status_code == 200
    assert ok(v3.patch("/publications/61", json={"publication_date": None})) == {
        **created,
        "title": "On tides again",
        "publication_date": None,
    }


@pytest.mark.parametrize("resource", PATHS)
def test_a_resource_can_be_a_store_of_documents(make_service: Make, open_v3: OpenV3, resource: str) -> None:
    """In an empty library, fields without `from` take and return any JSON value, whatever the sandbox itself requires."""
    service = make_service(0)
    shape(service, {"resources": {resource: {"fields": {"body": {"schema": {}}, "more": {}}}}})
    v3 = open_v3(service)
    if resource == "locations":  # the API cannot create them
        first, second = (control(service, "POST", "locations", each).json() for each in ({"body": ANYTHING}, {}))
    else:
        first, second = (ok(v3.post(PATHS[resource], json=each)) for each in ({"body": ANYTHING}, {}))
    assert first == {"id": first["id"], "body": ANYTHING, "more": None}
    assert second == {"id": first["id"] + 1, "body": None, "more": None}
    assert ok(v3.patch(f"{PATHS[resource]}/{second['id']}", json={"more": [ANYTHING]}))["more"] == [ANYTHING]
    found = records(v3, resource)
    assert found[first["id"]] == first
    assert found[second["id"]] == {**second, "more": [ANYTHING]}
    fits(description(v3), f"{description_name(resource)}List", {"records": list(found.values())})
    for body in (b'{"body": 1e400}', b'{"body": ' + b"[" * 970 + b"]" * 970 + b"}"):
        assert v3.patch(f"{PATHS[resource]}/{first['id']}", content=body).status_code in {400, 422}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "shapes: must be an object"),
        ({"resources": {"reviews": {"fields": {}}}}, "shapes.resources: reviews is unknown"),
        ({"resources": {"tasks": {}}}, "shapes.resources.tasks.fields: is missing"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "name"}}}}}, "tasks.fields.a: there is no field 'name'; known are title"),
        ({"resources": {"tasks": {"fields": {"a": {"form": "sideways"}}}}}, "fields.a: form: must be one of"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "title", "form": "datetime"}}}}}, "title has no form datetime"),
        ({"resources": {"tasks": {"fields": {"a": {"form": "object"}}}}}, "only for a field with from"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "title", "seed": [1]}}}}}, "only for a field without from"),
        ({"resources": {"tasks": {"fields": {"id": {}}}}}, "a field needs a name other than id"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "title"}, "b": {"from": "title"}}}}}, "title is twice"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "completed_at", "required": True}}}}}, "payloads of a create do not"),
        ({"resources": {"tasks": {"fields": {"a": {"schema": {"items": {"type": "text"}}}}}}}, "fields.a: type must be one of"),
        ({"resources": {"tasks": {"fields": {"a": {"schema": {"oneOf": []}}}}}}, "fields.a: oneOf is unknown"),
        ({"resources": {"tasks": {"fields": {"a": {"schema": {"$ref": "#/components/schemas/No"}}}}}}, "there is no schema"),
        ({"resources": {"tasks": {"fields": {"a": {"reference": "users"}}}}}, "fields.a: reference: unknown"),
        ({"resources": {"tasks": {"fields": {}, "merge": {"method": "POST"}}}}, "only authorities and locations"),
        (
            {"resources": {"authorities": {"fields": {}, "merge": {"path": "/tasks/{id}"}}}},
            "PATCH /tasks/{id} is already another operation",
        ),
        ({"description": "perhaps"}, "shapes.description: must be follows"),
    ],
)  # fmt: skip
def test_invalid_shapes_are_refused(make_service: Make, content: object, problem: str) -> None:
    """A running sandbox keeps its own."""
    service = make_service(0)
    status, message = refused(control(service, "PUT", "settings", {"shapes": content}))
    assert status == 422
    assert problem in message
    assert service.tenant.settings.shapes == ""
