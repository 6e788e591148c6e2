"""service.md#v2: what people with each role may do in version 2. A person made over the API has the password of the ready line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
import yaml

from tests.spec.conftest import Library
from tests.spec.uploads import presigned, upload

EVERYBODY, LIBRARIANS, ADMINS = 0, 1, 2

NEEDS: Mapping[tuple[str, str], int] = {
    ("get", "/publications"): EVERYBODY,
    ("get", "/publications/all"): EVERYBODY,
    ("get", "/publications/{id}"): EVERYBODY,
    ("get", "/assets/{id}"): EVERYBODY,
    ("post", "/publications"): LIBRARIANS,
    ("patch", "/publications/{id}"): LIBRARIANS,
    ("delete", "/publications/{id}"): LIBRARIANS,
    ("get", "/publications/cover/presign"): LIBRARIANS,
    ("get", "/assets/presign"): LIBRARIANS,
    ("post", "/assets"): LIBRARIANS,
    ("patch", "/assets/{id}"): LIBRARIANS,
    ("delete", "/assets/{id}"): LIBRARIANS,
    ("post", "/users"): ADMINS,
    ("patch", "/users/{id}/roles"): ADMINS,
    ("delete", "/users/{id}"): ADMINS,
}
"""The least role for each operation of version 2."""

PEOPLE: Mapping[str, tuple[list[str], int]] = {
    "nobody": ([], EVERYBODY),
    "reader": (["reader"], EVERYBODY),
    "capital": (["Admin", "LIBRARIAN"], EVERYBODY),
    "librarian": (["librarian"], LIBRARIANS),
    "both": (["librarian", "reader"], LIBRARIANS),
    "admin": (["admin"], ADMINS),
}
"""Roles of each person, and the most that they may do."""


def person(library: Library, name: str, roles: list[str]) -> httpx.Client:
    """Creates a person over version 2, and returns that person's client."""
    email = f"{name}@library.example"
    made = library.v2().post("/users", json={"email": email, "name": name, "roles": roles})
    assert made.status_code == 200, made.text
    return library.v2(auth=(email, library.tenant.account.password))


def requests(library: Library) -> Mapping[tuple[str, str], tuple[str, Any]]:
    """Returns the address and the payload of a request for each operation that an admin may make, in an order that works."""
    admin = library.v2()
    file = {"id": upload(library, presigned(admin)), "storage": "cache"}
    asset = f"/assets/{admin.post('/assets', json={'publication_id': 1, 'file': file}).json()['id']}"
    user = f"/users/{admin.post('/users', json={'email': 'x@library.example', 'name': 'X'}).json()['id']}"
    return {
        ("get", "/publications"): ("/publications", None),
        ("get", "/publications/all"): ("/publications/all", None),
        ("get", "/publications/{id}"): ("/publications/1", None),
        ("get", "/assets/{id}"): (asset, None),
        ("get", "/publications/cover/presign"): ("/publications/cover/presign", None),
        ("get", "/assets/presign"): ("/assets/presign", None),
        ("post", "/publications"): ("/publications", {"title": "New"}),
        ("patch", "/publications/{id}"): ("/publications/1", {"title": "Changed"}),
        ("post", "/assets"): ("/assets", {"publication_id": 1, "file": file}),
        ("patch", "/assets/{id}"): (asset, {"name": "Changed"}),
        ("delete", "/assets/{id}"): (asset, None),
        ("delete", "/publications/{id}"): ("/publications/2", None),
        ("post", "/users"): ("/users", {"email": "y@library.example", "name": "Y"}),
        ("patch", "/users/{id}/roles"): (f"{user}/roles", {"roles": ["admin"]}),
        ("delete", "/users/{id}"): (user, None),
    }


def state(library: Library) -> object:
    """Returns what the library contains, without addresses, which change."""
    client = library.v3()
    publications = client.get("/publications?per_page=50").json()["records"]
    for record in publications:
        record["assets"] = [(asset["id"], asset["name"]) for asset in record["assets"]]
    return [(each["id"], each["title"], each["assets"]) for each in publications], client.get("/users").json()


@pytest.mark.parametrize("name", PEOPLE)
def test_each_role_may_do_what_it_allows_and_nothing_else(library: Library, name: str) -> None:
    """service.md#v2: permissions are those of the roles. Assumption: which; anything else is 403, and has no effect."""
    roles, most = PEOPLE[name]
    client, asked = person(library, name, roles), requests(library)
    for operation, (path, payload) in asked.items():
        before = None if NEEDS[operation] <= most else state(library)
        answer = client.request(operation[0], path, json=payload)
        if NEEDS[operation] <= most:
            assert answer.status_code == 200, (operation, answer.text)
            continue
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "AccessDenied"), operation
        assert state(library) == before, operation


def test_the_table_has_every_operation_of_version_2(library: Library) -> None:
    """service.md#v2: no operation of the description is without a role, but for the description itself."""
    document = yaml.safe_load(library.client("/api/v2").get("/swagger.yaml").text)
    described = {(method, path) for path, item in document["paths"].items() for method in item}
    assert described == NEEDS.keys() | {("get", "/swagger.yaml")}
    assert requests(library).keys() == NEEDS.keys()


def test_a_file_in_a_publication_needs_the_right_to_attach_files(library: Library) -> None:
    """service.md#v2: permissions are those of the roles, also for `assets` in the payload of a publication."""
    file = {"id": upload(library, presigned(library.v2())), "storage": "cache"}
    payload = {"title": "With a file", "assets": [{"file": file}]}
    assert person(library, "reader", []).post("/publications", json=payload).status_code == 403
    assert person(library, "librarian", ["librarian"]).post("/publications", json=payload).status_code == 200


def test_roles_are_the_current_ones(library: Library) -> None:
    """service.md#v2: permissions equal the roles: a change counts from the next request on, and a deleted person is signed out."""
    client = person(library, "changing", [])
    number = next(
        each["id"] for each in library.v3().get("/users?per_page=50").json()["records"] if each["name"] == "changing"
    )
    write: Callable[[], int] = lambda: client.post("/publications", json={"title": "T"}).status_code  # noqa: E731
    assert write() == 403
    library.v2().patch(f"/users/{number}/roles", json={"roles": ["librarian"]})
    assert write() == 200
    library.v2().patch(f"/users/{number}/roles", json={"roles": []})
    assert write() == 403
    library.v2().delete(f"/users/{number}")
    assert write() == 401
