"""Other shapes of the resources of version 3 (sandbox/README.md, "Other shapes")."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from sandbox.state.database import Database
from tests.sandbox.conftest import FakeClock, Service, open_service
from tests.sandbox.process import SandboxProcess
from tests.sandbox.shapes import (
    EXAMPLE,
    PATHS,
    description,
    description_name,
    example,
    fits,
    ok,
    records,
    refused,
    shape,
)
from tests.sandbox.test_control import control

HERE = Path(__file__).parent
ANYTHING = {"a": [1, {"b": None}, "ü"], "c": 1.5, "": True}

Make = Callable[..., Service]
OpenV3 = Callable[[Service], httpx.Client]


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


def test_initial_records_have_the_seeds_by_turn(v3: httpx.Client) -> None:
    notes = [each["notes"] for each in records(v3, "authorities").values()]
    assert notes[:4] == ["a note", None, "another", "a note"]
    number = ok(v3.post("/authorities", json={"authority": {"name": "New"}}))["id"]
    created = records(v3, "authorities")[number]
    assert (created["notes"], created["created_at"]) == (None, "2019-05-01T10:00:00Z")


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


@pytest.mark.parametrize(
    ("path", "payload", "problem"),
    [
        ("/hard_copies", {}, "publication is missing"),
        ("/hard_copies", {"publication": 7}, "publication must be string"),
        ("/hard_copies", {"publication": "07"}, "publication must match ^[1-9][0-9]{0,17}$"),
        ("/hard_copies", {"publication": "7", "location": 3}, "location must be object or null"),
        ("/hard_copies", {"publication": "7", "shelf": {"side": "up"}}, 'shelf.side must be one of "left", "right"'),
        ("/hard_copies", {"publication": "7", "bought_at": "2021-02-29T00:00Z"}, "bought_at must be a time such as 2020-01-31T00:00:00Z"),
        ("/hard_copies", {"publication": "7", "barcode": "X"}, "barcode is unknown"),
        ("/authorities", {"authority": {"name": "A", "created_at": "2020-01-01T00:00:00Z"}}, "authority.created_at is unknown"),
        ("/publications", {"title": "A", "published_on": "2020-01-01"}, "published_on is unknown"),
    ],
)  # fmt: skip
def test_a_payload_has_to_fit_the_shape(v3: httpx.Client, path: str, payload: object, problem: str) -> None:
    assert refused(v3.post(path, json=payload)) == (422, problem)


def test_unknown_and_read_only_fields_may_be_ignored(shaped: Service, v3: httpx.Client) -> None:
    shaped.vary(unknown_fields="ignored", dropped_field="notes")
    before = records(v3, "authorities")[1]
    more = {
        "created_at": "2020-01-01T00:00:00Z",
        "kind": "subject",
        "extra": {"notes": "x"},
        "id": 9,
        "notes": "dropped",
    }
    ok(v3.put("/authorities/1", json={"authority": more, "extra": {"notes": "x"}}))
    assert records(v3, "authorities")[1] == before


def test_an_unknown_reference_is_404(v3: httpx.Client) -> None:
    assert v3.post("/hard_copies", json={"publication": "99"}).status_code == 404
    assert v3.post("/hard_copies", json={"publication": "9" * 18}).status_code == 404
    assert v3.post("/hard_copies", json={"publication": "7", "location": {"id": 99}}).status_code == 404


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


def test_shapes_change_while_it_runs(make_service: Make, open_v3: OpenV3) -> None:
    """Between two nights, a field appears and the names change; values that were written come back with their shape."""
    service = make_service(60)
    v3 = open_v3(service)
    before, plain = records(v3, "authorities"), v3.get("/swagger.yaml").text
    shape(service, example())
    ok(v3.put("/authorities/1", json={"authority": {"notes": "kept"}}))
    shape(service, None)
    assert records(v3, "authorities") == before
    assert v3.get("/swagger.yaml").text == plain
    shape(service, {"resources": {"authorities": {"fields": {"notes": {}, "label": {"from": "name"}}}}})
    assert records(v3, "authorities")[1] == {"id": 1, "notes": "kept", "label": before[1]["name"]}
    assert control(service, "GET", "settings").json()["library"]["shapes"]["resources"]["authorities"]
    control(service, "POST", "reset")
    assert records(v3, "authorities") == before


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


def test_people_and_tasks_keep_what_they_do(make_service: Make, open_v3: OpenV3) -> None:
    service = make_service(60)
    user = {"mail": {"from": "email"}, "groups": {"from": "roles", "form": "entries", "member": "name"}}
    task = {
        "what": {"from": "title"},
        "who": {"from": "assignee_id", "form": "object"},
        "done_at": {"from": "completed_at"},
    }
    shape(service, {"resources": {"users": {"fields": user}, "tasks": {"fields": task}}})
    v3 = open_v3(service)
    assert ok(v3.get("/users/me"))["groups"] == [{"name": "admin"}, {"name": "librarian"}]
    number = ok(v3.post("/users", json={"mail": "new@library.example"}))["id"]
    assert ok(v3.get(f"/users/{number}")) == {"id": number, "mail": "new@library.example", "groups": []}
    assert refused(v3.post("/users", json={"mail": "NEW@library.example"}))[0] == 422
    created = ok(v3.post("/tasks", json={"what": "Dust", "who": {"id": 2}}))
    assert (created["who"], created["done_at"]) == ({"id": 2, "name": "Marta Quillfeather"}, None)
    assert ok(v3.patch(f"/tasks/{created['id']}/complete"))["done_at"] is not None
    assert v3.post("/tasks", json={"what": "Dust", "done_at": "2020-01-01T00:00:00Z"}).status_code == 422


def test_a_process_serves_the_shapes_of_a_file() -> None:
    with SandboxProcess("--tenant", "library=real:60", "--shapes", str(EXAMPLE)) as sandbox:
        token = sandbox.control("POST", "tokens", {})["access_token"]
        with httpx.Client(
            base_url=f"{sandbox.base_url()}/api/v3", headers={"Authorization": f"Bearer {token}"}
        ) as client:
            assert records(client, "authorities")[1]["type"] == "Person"
            assert client.put("/authorities/1", json={"authority": {"notes": "over a socket"}}).status_code == 200
            assert records(client, "authorities")[1]["notes"] == "over a socket"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "shapes must be object"),
        ({"resources": {"reviews": {"fields": {}}}}, "shapes.resources.reviews is unknown"),
        ({"resources": {"tasks": {}}}, "shapes.resources.tasks.fields is missing"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "name"}}}}}, "there is no field 'name'; known are assignee_id"),
        ({"resources": {"tasks": {"fields": {"a": {"form": "sideways"}}}}}, "a.form must be one of"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "title", "form": "datetime"}}}}}, "title has no form datetime"),
        ({"resources": {"tasks": {"fields": {"a": {"form": "object"}}}}}, "form: only for a field with from"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "title", "seed": [1]}}}}}, "seed: only for a field without from"),
        ({"resources": {"tasks": {"fields": {"id": {}}}}}, "a field needs a name other than id"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "title"}, "b": {"from": "title"}}}}}, "title is twice"),
        ({"resources": {"tasks": {"fields": {"a": {"from": "completed_at", "required": True}}}}}, "payloads of a create do not"),
        ({"resources": {"tasks": {"fields": {"a": {"schema": {"type": "text"}}}}}}, "a.schema.type must be one of"),
        ({"resources": {"tasks": {"fields": {"a": {"schema": {"oneOf": []}}}}}}, "a.schema.oneOf is unknown"),
        ({"resources": {"tasks": {"fields": {"a": {"schema": {"$ref": "#/components/schemas/No"}}}}}}, "there is no schema No"),
        ({"resources": {"tasks": {"fields": {"a": {"schema": {"pattern": "("}}}}}}, "must be a regular expression"),
        ({"resources": {"tasks": {"fields": {"a": {"schema": {"type": "string"}, "seed": [1]}}}}}, "seed must be string"),
        ({"resources": {"tasks": {"fields": {"a": {"reference": "users"}}}}}, "a.reference is unknown"),
        ({"resources": {"tasks": {"fields": {}, "merge": {"method": "POST"}}}}, "only authorities and locations"),
        ({"resources": {"hard_copies": {"fields": {"s": {"from": "status", "values": {"lost": "x"}}}}}}, "known words are available"),
        (
            {"resources": {"authorities": {"fields": {"k": {"from": "kind", "values": {"person": "subject"}}}}}},
            "two words would be the same",
        ),
        (
            {"resources": {"authorities": {"fields": {}, "merge": {"path": "/tasks/{id}"}}}},
            "PATCH /tasks/{id} is already another operation",
        ),
        ({"description": "perhaps"}, "shapes.description must be one of"),
    ],
)  # fmt: skip
def test_invalid_shapes_are_refused(make_service: Make, content: object, problem: str) -> None:
    """A running sandbox keeps its own."""
    service = make_service(0)
    status, message = refused(control(service, "PUT", "settings", {"shapes": content}))
    assert status == 422
    assert problem in message
    assert service.tenant.settings.shapes == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "no JSON"),
        ("", "no JSON"),
        (None, "cannot be read"),
        ({"resources": {"reviews": {"fields": {}}}}, "shapes.resources.reviews is unknown"),
        ({"description": {"file": "nowhere.yaml"}}, "cannot be read"),
    ],
)
def test_it_does_not_start_with_invalid_shapes(tmp_path: Path, content: object, problem: str) -> None:
    """It ends with status 2 and says what is wrong."""
    file = tmp_path / "shapes.json"
    if content is not None:
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    done = subprocess.run(
        [sys.executable, "-m", "sandbox", "--shapes", file],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_state_of_an_earlier_sandbox_goes_on_working(tmp_path: Path, open_v3: OpenV3) -> None:
    """The file was made by the sandbox before there were other shapes."""
    file = tmp_path / "state.db"
    file.write_bytes(lzma.decompress((HERE / "state_of_schema_2.db.xz").read_bytes()))
    database = Database(file)
    service = open_service(database, None, FakeClock())
    v3 = open_v3(service)
    counts = {resource: len(records(v3, resource)) for resource in PATHS}
    assert counts == {
        "publications": 10, "users": 8, "hard_copies": 5, "locations": 6, "collections": 4, "authorities": 40, "tasks": 4,
    }  # fmt: skip
    assert records(v3, "hard_copies")[5]["barcode"] == "KEPT"
    shape(service, example())
    ok(v3.patch("/hard_copies/5", json={"shelf": {"row": 3}}))
    assert ok(v3.delete("/publications/2")) == {}
    assert 5 not in records(v3, "hard_copies")
    ok(v3.patch("/publications/1", json={"subtitle": "kept"}))
    database.close()
    again = Database(file)
    service = open_service(again, None, FakeClock())
    shape(service, example())
    assert ok(open_v3(service).get("/publications/1"))["subtitle"] == "kept"
    again.close()


def test_the_readme_shows_these_shapes() -> None:
    text = (HERE.parents[1] / "sandbox" / "README.md").read_text("utf-8")
    printed = text.partition("\n## Other shapes\n")[2].partition("```json\n")[2].partition("```")[0]
    assert json.loads(printed) == example()
