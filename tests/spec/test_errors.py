"""service.md#errors: statuses and the error body."""

from __future__ import annotations

from itertools import product

import httpx
import pytest
import yaml

from tests.spec.conftest import Library


def error(answer: httpx.Response) -> dict[str, str]:
    """Returns the error of an error body, which has no other members."""
    assert answer.headers["Content-Type"].startswith("application/json")
    assert list(answer.json()) == ["error"]
    members: dict[str, str] = answer.json()["error"]
    assert sorted(members) == ["code", "message"]
    assert all(isinstance(value, str) for value in members.values())
    return members


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_no_operation_takes_another_record_for_a_missing_one(library: Library, version: str) -> None:
    """service.md#errors: a missing record is 404 `RecordNotFound`, "Requested record not found", in each operation on one record."""
    client = library.v2() if version == "v2" else library.v3()
    document = yaml.safe_load(library.client(f"/api/{version}").get("/swagger.yaml").text)
    requests = [
        (method, path) for path, operations in document["paths"].items() for method in operations if "{id}" in path
    ]
    assert len(requests) > 5
    for (method, path), number in product(requests, ("0", "x", "9999", "9" * 30, "-1", "1.0", "²")):
        payload = {"/users/{id}/roles": {"roles": []}}.get(path, {"into_id": 1} if path.endswith("/merge") else {})
        body = {} if method in {"get", "delete"} else {"json": payload}
        answer = client.request(method, path.replace("{id}", number), **body)
        expected = {"code": "RecordNotFound", "message": "Requested record not found"}
        assert (answer.status_code, error(answer)) == (404, expected), (method, path, number)
