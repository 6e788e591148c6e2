"""service.md#users: users in version 3 and in version 2."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.spec.conftest import Library

PERSON = {"email": "new@library.example", "name": "Nora New", "roles": ["librarian"]}
V3_FIELDS = ["id", "email", "name", "roles", "avatar"]


@pytest.fixture(params=["v3", "v2"])
def client(request: pytest.FixtureRequest, library: Library) -> httpx.Client:
    """A client for each version that may do everything."""
    return library.v3() if request.param == "v3" else library.v2()


def create(client: httpx.Client, **values: Any) -> httpx.Response:
    return client.post("/users", json={**PERSON, **values})


def test_a_create_payload_carries_email_name_and_roles(client: httpx.Client, library: Library) -> None:
    """service.md#users: the payload of a new user has `email`, `name` and `roles`, which are names.

    Assumption: other names than librarian and admin are accepted, each once.
    """
    answer = create(client)
    assert answer.status_code == 200
    user = answer.json()
    assert {name: user[name] for name in PERSON} == PERSON
    stored = library.v3().get(f"/users/{user['id']}").json()
    assert list(stored) == V3_FIELDS
    assert stored == {**user, "avatar": None}
    assert create(client, email="x@library.example", roles=["admin", "reader", "admin"]).json()["roles"] == [
        "admin",
        "reader",
    ]
    assert client.post("/users", json={"email": "y@library.example", "name": "Y"}).json()["roles"] == []


def test_a_user_can_be_deleted(client: httpx.Client, library: Library) -> None:
    """service.md#users: both versions delete users. Assumption: sessions and tokens end, too."""
    number = create(client).json()["id"]
    user_client = library.client(
        "/api/v3", headers={"Authorization": f"Bearer {library.token(person=PERSON['email'])}"}
    )
    assert user_client.get("/users/me").status_code == 200
    assert client.delete(f"/users/{number}").status_code == 200
    assert client.delete(f"/users/{number}").status_code == 404
    assert library.v3().get(f"/users/{number}").status_code == 404
    assert user_client.get("/users/me").status_code == 401


def test_one_patch_changes_everything(library: Library) -> None:
    """service.md#users: v3 changes the whole user with PATCH /users/:id."""
    client = library.v3()
    user = create(client).json()
    path = f"/users/{user['id']}"
    changed = client.patch(path, json={"email": "n@library.example", "name": "N", "roles": ["admin"]}).json()
    assert changed == {**user, "email": "n@library.example", "name": "N", "roles": ["admin"]}
    assert client.patch(path, json={}).json() == changed == client.get(path).json()
    assert client.patch(path, json={"email": "BACKUP@library.example"}).status_code == 422
    assert client.patch(path, json={"roles": "admin"}).status_code == 422


def test_v2_changes_roles_on_a_path_of_their_own(library: Library) -> None:
    """service.md#users: v2 changes roles with PATCH /users/:id/roles and `{roles: [..]}`."""
    client = library.v2()
    user = create(client).json()
    answer = client.patch(f"/users/{user['id']}/roles", json={"roles": ["admin"]})
    assert answer.json() == {**user, "roles": ["admin"]}
    assert client.patch(f"/users/{user['id']}/roles", json={}).status_code == 422
    assert client.patch(f"/users/{user['id']}/roles", json={"roles": [], "name": "x"}).status_code == 422
    assert client.patch(f"/users/{user['id']}", json={"name": "x"}).status_code == 405


def test_two_user_endpoints_of_v2_are_deprecated(library: Library) -> None:
    """service.md#deprecation: two user endpoints of v2 send `X-API-Deprecation`. Assumption: which two, and its value."""
    client = library.v2()
    created = create(client)
    number = created.json()["id"]
    changed = client.patch(f"/users/{number}/roles", json={"roles": []})
    deleted = client.delete(f"/users/{number}")
    headers = [answer.headers.get("X-API-Deprecation") for answer in (created, changed, deleted)]
    assert headers == ["POST /users", "PATCH /users/:id/roles", None]
    v3 = create(library.v3())
    assert "X-API-Deprecation" not in v3.headers
