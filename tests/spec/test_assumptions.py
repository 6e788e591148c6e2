"""The tests of what docs/service.md assumes, as far as they belong to no other file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sandbox import errors
from sandbox.app import VERSIONS
from tests.spec.conftest import Library
from tests.spec.oauth_client import register
from tests.spec.test_publication_record import create, refusal


def test_quality_reviews_have_no_address(library: Library) -> None:
    """service.md#other-resources: no endpoint is known for quality reviews."""
    for path in ("/quality_reviews", "/quality_reviews/1", "/publications/1/quality_reviews"):
        assert library.v3().get(path).status_code == 404


def test_records_have_no_states(library: Library) -> None:
    """service.md#errors: a record can be changed and deleted at any time."""
    client = library.v3()
    copy = client.post("/hard_copies", json={"publication_id": 1}).json()["id"]
    for status in ("missing", "on_loan", "missing", "available", "on_loan"):
        assert client.patch(f"/hard_copies/{copy}", json={"status": status}).json()["status"] == status
    assert client.delete(f"/hard_copies/{copy}").status_code == 200
    task = client.post("/tasks", json={"title": "Dust"}).json()["id"]
    client.patch(f"/tasks/{task}/complete")
    assert client.patch(f"/tasks/{task}", json={"title": "Dust again"}).json()["title"] == "Dust again"
    assert client.delete("/publications/1").status_code == 200


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_no_events_are_offered(library: Library, version: Any) -> None:
    """service.md#not-shown: the description has no events."""
    description = yaml.safe_load(library.client(f"/api/{version.name}").get("/swagger.yaml").text)
    assert "webhooks" not in description
    operations = [each for path in description["paths"].values() for each in path.values() if isinstance(each, dict)]
    assert operations
    assert not any("callbacks" in operation for operation in operations)


def test_the_codes_of_errors() -> None:
    """service.md#errors: the error codes."""
    refusals = [
        errors.bad_request(""), errors.unauthorized(""), errors.invalid_token("", ""), errors.access_denied(),
        errors.insufficient_scope(""), errors.record_not_found(), errors.route_not_found(""),
        errors.storage_not_found(""), errors.method_not_allowed("", ()),
        errors.unprocessable(""), errors.too_many_requests(1), errors.internal_server_error(),
    ]  # fmt: skip
    assert [(each.status, each.code) for each in refusals] == [
        (400, "BadRequest"), (401, "Unauthorized"), (401, "Unauthorized"), (403, "AccessDenied"), (403, "InsufficientScope"),
        (404, "RecordNotFound"), (404, "RouteNotFound"), (404, "StorageNotFound"), (405, "MethodNotAllowed"),
        (422, "UnprocessableEntity"), (429, "TooManyRequests"), (500, "InternalServerError"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("none", {"read"}),
        ("librarian", {"read", "write", "see users"}),
        ("admin", {"read", "write", "see users", "manage users"}),
    ],
)
def test_what_roles_allow(library: Library, role: str, allowed: set[str]) -> None:
    """service.md#v2: what each role allows; anything else is 403."""
    person = {"email": "new@library.example", "name": "Nora New"}
    assert library.v3().post("/users", json={**person, "roles": [role]}).status_code == 200
    headers = {"Authorization": f"Bearer {library.token(person=person['email'])}"}
    client = library.client("/api/v3", headers=headers)
    answers = {
        "read": client.get("/publications"),
        "write": client.patch("/publications/1", json={}),
        "see users": client.get("/users"),
        "manage users": client.patch("/users/2", json={}),
    }
    assert {name for name, answer in answers.items() if answer.status_code == 200} == allowed
    assert {refusal(answer) for name, answer in answers.items() if name not in allowed} <= {(403, "AccessDenied")}


def test_twenty_registrations_are_accepted(empty: Library) -> None:
    """service.md#clients: 20 registrations in a day."""
    assert [register(empty).status_code for _ in range(21)] == [201] * 20 + [429]


def test_a_search_may_lag_behind(empty: Library) -> None:
    """service.md#search, setting `index_lag`: a search finds a new record later than a plain list and the record itself show it."""
    client = empty.v3()
    empty.change(index_lag=60)
    number = create(client, identifiers=[{"type": "doi", "value": "10.1/1"}])["id"]
    assert client.get("/publications?doi=10.1/1").json() == {"records": []}
    assert client.get("/publications").headers["X-Total"] == "1"
    assert client.get(f"/publications/{number}").status_code == 200
    empty.clock.time += 60
    assert [each["id"] for each in client.get("/publications?doi=10.1/1").json()["records"]] == [number]
    empty.change(index_lag=0)
    other = create(client, identifiers=[{"type": "doi", "value": "10.1/2"}])["id"]
    assert [each["id"] for each in client.get("/publications?doi=10.1/2").json()["records"]] == [other]


def test_both_versions_show_categories_alike(empty: Library) -> None:
    """service.md#references: both versions answer the same categories."""
    v2, v3 = empty.v2(), empty.v3()
    created = create(v2, categories=[{"name": "History"}])
    assert [sorted(each) for each in created["categories"]] == [["id", "name"]]
    assert v3.get(f"/publications/{created['id']}").json()["categories"] == created["categories"]


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_nulls_may_be_left_out(empty: Library, version: str) -> None:
    """service.md#publications, variation `nulls`: a field without a value is null or absent."""
    client = getattr(empty, version)()
    number = create(client)["id"]
    full = client.get(f"/publications/{number}").json()
    assert full["abstract"] is None
    empty.vary(nulls="absent")
    filled = {name: value for name, value in full.items() if value is not None}
    assert client.get(f"/publications/{number}").json() == filled
    assert client.get("/publications").json()["records"] == [filled]


def test_import_state_is_in_v2_only(library: Library) -> None:
    """service.md#deprecation: `import_state` is a field of v2 only."""
    assert library.v2().get("/publications/1").json()["import_state"] == "imported"
    assert create(library.v2())["import_state"] is None
    assert "import_state" not in library.v3().get("/publications/1").json()


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_create_may_be_answered_with_201(empty: Library, version: str) -> None:
    """service.md#errors, variation `created_status`: a create answers 200 or 201."""
    client = getattr(empty, version)()
    person = {"email": "new@library.example", "name": "Nora New"}
    for status, address in (("ok", "a@library.example"), ("created", "b@library.example")):
        empty.vary(created_status=status)
        answers = [
            client.post("/publications", json={"title": "A"}),
            client.post("/users", json={**person, "email": address}),
        ]
        assert [answer.status_code for answer in answers] == [201 if status == "created" else 200] * 2
        assert all(isinstance(answer.json()["id"], int) for answer in answers)


@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize(
    ("variation", "status", "body"), [("object", 200, b"{}"), ("empty", 200, b""), ("no_content", 204, b"")]
)
def test_a_deletion_may_be_answered_in_three_ways(
    empty: Library, version: str, variation: str, status: int, body: bytes
) -> None:
    """service.md#errors, variation `deleted_answer`: a deletion answers an object, an empty body or 204."""
    client = getattr(empty, version)()
    empty.vary(deleted_answer=variation)
    number = create(client)["id"]
    answer = client.delete(f"/publications/{number}")
    assert (answer.status_code, answer.content) == (status, body)
    assert refusal(client.get(f"/publications/{number}")) == (404, "RecordNotFound")
