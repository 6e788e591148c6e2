"""The tests of what docs/service.md assumes, as far as they belong to no other file."""

from __future__ import annotations

import pytest

from sandbox import errors
from tests.spec.conftest import Library
from tests.spec.oauth_client import register
from tests.spec.test_publication_record import create, refusal


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


def test_both_versions_show_categories_alike(empty: Library) -> None:
    """service.md#references: both versions answer the same categories."""
    v2, v3 = empty.v2(), empty.v3()
    created = create(v2, categories=[{"name": "History"}])
    assert [sorted(each) for each in created["categories"]] == [["id", "name"]]
    assert v3.get(f"/publications/{created['id']}").json()["categories"] == created["categories"]


def test_import_state_is_in_v2_only(library: Library) -> None:
    """service.md#deprecation: `import_state` is a field of v2 only."""
    assert library.v2().get("/publications/1").json()["import_state"] == "imported"
    assert create(library.v2())["import_state"] is None
    assert "import_state" not in library.v3().get("/publications/1").json()
