"""service.md#v2: what people with each role may do in version 2. A person made over the API has the password of the ready line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest
import yaml

from tests.spec.conftest import Library
from tests.spec.uploads import presigned, upload

EVERYBODY, LIBRARIANS, ADMINS = 0, 1, 2

OPERATIONS: Sequence[tuple[int, str, str, Any]] = (
    (EVERYBODY, "get", "/publications", None),
    (EVERYBODY, "get", "/publications/all", None),
    (EVERYBODY, "get", "/publications/{publication}", None),
    (EVERYBODY, "get", "/assets/{asset}", None),
    (LIBRARIANS, "get", "/publications/cover/presign", None),
    (LIBRARIANS, "get", "/assets/presign", None),
    (LIBRARIANS, "post", "/publications", {"title": "New"}),
    (LIBRARIANS, "patch", "/publications/{publication}", {"title": "Changed"}),
    (LIBRARIANS, "post", "/assets", {"publication_id": 1}),
    (LIBRARIANS, "patch", "/assets/{asset}", {"name": "Changed"}),
    (LIBRARIANS, "delete", "/assets/{asset}", None),
    (LIBRARIANS, "delete", "/publications/{publication}", None),
    (ADMINS, "post", "/users", {"email": "y@library.example", "name": "Y"}),
    (ADMINS, "patch", "/users/{user}/roles", {"roles": ["admin"]}),
    (ADMINS, "delete", "/users/{user}", None),
)
"""The least role for each operation of version 2, and a payload, in an order that works."""

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
    answer = library.v2().post("/users", json={"email": email, "name": name, "roles": roles})
    assert answer.status_code == 200, answer.text
    return library.v2(auth=(email, library.tenant.account.password))


def state(library: Library) -> object:
    """Returns what the library contains, without addresses, which change."""
    client = library.v3()
    publications = client.get("/publications?per_page=50").json()["records"]
    for record in publications:
        record["assets"] = [(asset["id"], asset["name"]) for asset in record["assets"]]
    return [(record["id"], record["title"], record["assets"]) for record in publications], client.get("/users").json()


@pytest.mark.parametrize("name", PEOPLE)
def test_each_role_may_do_what_it_allows_and_nothing_else(library: Library, name: str) -> None:
    """service.md#v2: permissions are those of the roles. Assumption: which; anything else is 403, and has no effect."""
    roles, rank = PEOPLE[name]
    client, admin = person(library, name, roles), library.v2()
    file = {"id": upload(library, presigned(admin)), "storage": "cache"}
    ids = {
        "publication": 2,
        "asset": admin.post("/assets", json={"publication_id": 1, "file": file}).json()["id"],
        "user": admin.post("/users", json={"email": "x@library.example", "name": "X"}).json()["id"],
    }
    for least_rank, method, path, payload in OPERATIONS:
        before = None if least_rank <= rank else state(library)
        body = {**payload, "file": file} if path == "/assets" else payload
        answer = client.request(method, path.format(**ids), json=body)
        if least_rank <= rank:
            assert answer.status_code == 200, (method, path, answer.text)
            continue
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "AccessDenied"), (method, path)
        assert state(library) == before, (method, path)


def test_a_file_in_a_publication_needs_the_right_to_attach_files(library: Library) -> None:
    """service.md#v2: permissions are those of the roles, also for `assets` in the payload of a publication."""
    file = {"id": upload(library, presigned(library.v2())), "storage": "cache"}
    payload = {"title": "With a file", "assets": [{"file": file}]}
    assert person(library, "reader", []).post("/publications", json=payload).status_code == 403
    assert person(library, "librarian", ["librarian"]).post("/publications", json=payload).status_code == 200


def test_the_table_has_every_operation_of_version_2(library: Library) -> None:
    """service.md#v2: no operation of the description is without a role, but for the description itself."""
    document = yaml.safe_load(library.client("/api/v2").get("/swagger.yaml").text)
    described = {(method, path) for path, operations in document["paths"].items() for method in operations}
    expected = {(method, re.sub(r"\{\w+\}", "{id}", path)) for _least, method, path, _payload in OPERATIONS}
    assert described == expected | {("get", "/swagger.yaml")}


def test_roles_are_the_current_ones(library: Library) -> None:
    """service.md#v2: permissions equal the roles: a change counts from the next request on, and a deleted person is signed out."""
    client, admin = person(library, "changing", []), library.v2()
    number = library.v3().get("/users?per_page=50").json()["records"][-1]["id"]
    statuses = []
    for roles in (["librarian"], [], None):
        statuses.append(client.post("/publications", json={"title": "T"}).status_code)
        if roles is None:
            admin.delete(f"/users/{number}")
        else:
            admin.patch(f"/users/{number}/roles", json={"roles": roles})
    assert [*statuses, client.get("/publications").status_code] == [403, 200, 403, 401]
