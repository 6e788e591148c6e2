"""service.md#scopes: the scope that each operation of version 3 needs."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from tests.spec.conftest import Library

NEEDS: Mapping[str, tuple[str, ...]] = {
    "library:read": (
        "GET /publications", "GET /publications/all", "GET /publications/{id}", "GET /hard_copies", "GET /hard_copies/locations",
        "GET /authorities", "GET /collections",
    ),
    "library:write": (
        "POST /publications", "PATCH /publications/{id}", "DELETE /publications/{id}", "GET /publications/cover/presign",
        "POST /hard_copies", "PATCH /hard_copies/{id}", "DELETE /hard_copies/{id}", "PATCH /hard_copies/locations/{id}",
        "PATCH /hard_copies/locations/{id}/merge", "POST /authorities", "PATCH /authorities/{id}", "PATCH /authorities/{id}/merge",
        "POST /collections", "PATCH /collections/{id}", "DELETE /collections/{id}",
    ),
    "assets:read": ("GET /assets/{id}",),
    "assets:write": ("GET /assets/presign", "POST /assets", "PATCH /assets/{id}", "DELETE /assets/{id}"),
    "users:read": ("GET /users", "GET /users/{id}"),
    "users:write": ("POST /users", "PATCH /users/{id}", "DELETE /users/{id}", "GET /users/avatar/presign"),
    "tasks:read": ("GET /tasks",),
    "tasks:write": ("POST /tasks", "PATCH /tasks/{id}", "PATCH /tasks/{id}/complete"),
}  # fmt: skip
"""The operations that each scope allows. `/publications/all`, merging and completing are assumed to need what their neighbours need."""


def test_every_operation_needs_its_scope_and_no_other(library: Library) -> None:
    """service.md#scopes: without the scope 403 `InsufficientScope`, which names it, whatever the other scopes; with it alone, none."""
    for scope, operations in NEEDS.items():
        client_without, client_with = library.v3(*(NEEDS.keys() - {scope})), library.v3(scope)
        for operation in operations:
            method, _, path = operation.replace("{id}", "2").partition(" ")
            refused = client_without.request(method, path, json={})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "InsufficientScope"), operation
            assert f'scope="{scope}"' in refused.headers["WWW-Authenticate"], operation
            assert client_with.request(method, path, json={}).status_code in {200, 404, 422}, operation


def test_the_own_record_needs_no_scope(library: Library) -> None:
    """service.md#users: GET /users/me answers the caller's own record whatever the scopes of the token are."""
    records = [library.v3(scope).get("/users/me").json() for scope in NEEDS]
    assert {record["email"] for record in records} == {library.tenant.account.email}


def test_the_description_names_the_scope_of_every_operation(library: Library) -> None:
    """service.md#scopes: each operation names its scope, but for the own record and the description itself; the flow has them all."""
    document = yaml.safe_load(library.client("/api/v3").get("/swagger.yaml").text)
    assert (document["info"]["version"], document["servers"]) == ("v3", [{"url": f"{library.base_url}/api/v3"}])
    flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]
    assert (flow["tokenUrl"], sorted(flow["scopes"])) == (f"{library.base_url}/oauth/token", sorted(NEEDS))
    described = {
        f"{method.upper()} {path}": operation.get("security")
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    expected = {operation: [{"oauth2": [scope]}] for scope, operations in NEEDS.items() for operation in operations}
    assert described == {**described, **expected}
    assert described.keys() - expected.keys() == {"GET /users/me", "GET /swagger.yaml"}
