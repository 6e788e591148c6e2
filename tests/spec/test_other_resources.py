"""service.md#other-resources: hard copies, locations, authorities, collections, tasks.

Their paths and fields are not shown (service.md#not-shown); those here are assumptions (service.md#other-resources).
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.spec.conftest import Library, links

LISTS = ("/hard_copies", "/hard_copies/locations", "/authorities", "/collections", "/tasks")
NEW: dict[str, dict[str, Any]] = {
    "/hard_copies": {"publication_id": 1, "barcode": "X1"},
    "/authorities": {"name": "Austen, Jane", "kind": "person"},
    "/collections": {"name": "Novels", "publication_ids": [1, 2]},
    "/tasks": {"title": "Dust the shelves", "due_on": "2026-12-24"},
}


@pytest.fixture
def client(library: Library) -> httpx.Client:
    return library.v3()


def records(client: httpx.Client, path: str, **query: str | int) -> list[dict[str, Any]]:
    answer = client.get(path, params={"per_page": 50, **query})
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()["records"]
    return entries


def new(client: httpx.Client, path: str, **values: Any) -> dict[str, Any]:
    answer = client.post(path, json={**NEW[path], **values})
    assert answer.status_code == 200, answer.text
    created: dict[str, Any] = answer.json()
    return created


@pytest.mark.parametrize("path", [*LISTS, "/publications", "/users"])
def test_every_list_has_records_and_pages(client: httpx.Client, path: str) -> None:
    """service.md#lists: every list has 25 entries a page by default, 50 at most, `X-Total` and `Link`."""
    answer = client.get(path, params={"per_page": 2})
    assert list(answer.json()) == ["records"]
    total = int(answer.headers["X-Total"])
    assert total > 2
    assert len(answer.json()["records"]) == 2
    ids = [record["id"] for record in answer.json()["records"]]
    while (following := links(answer).get("next")) is not None:
        answer = client.get(following)
        ids += [record["id"] for record in answer.json()["records"]]
    assert len(ids) == total
    assert ids == sorted(set(ids))
    assert len(records(client, path, per_page=99)) == min(total, 50)


@pytest.mark.parametrize("path", NEW)
def test_what_is_created_can_be_listed_and_changed(client: httpx.Client, path: str) -> None:
    """service.md#other-resources: hard copies, authorities, collections and tasks can be created and changed, two of them deleted."""
    created = new(client, path)
    assert {name: created[name] for name in NEW[path]} == NEW[path]
    last = client.get(path, params={"page": links(client.get(path))["last"].rpartition("=")[2]}).json()["records"][-1]
    assert last == created
    name = next(field for field in ("note", "name", "title") if field in created)
    changed = client.patch(f"{path}/{created['id']}", json={name: "Changed"}).json()
    assert changed == {**created, name: "Changed"}
    assert client.patch(f"{path}/{created['id']}", json={}).json() == changed
    if path in {"/hard_copies", "/collections"}:
        assert client.delete(f"{path}/{created['id']}").status_code == 200
        assert client.delete(f"{path}/{created['id']}").status_code == 404
        assert client.patch(f"{path}/{created['id']}", json={}).status_code == 404
        assert new(client, path)["id"] > created["id"]


def test_locations_are_merged(client: httpx.Client) -> None:
    """service.md#other-resources: locations can be merged. Assumption: their hard copies move."""
    source, target = records(client, "/hard_copies/locations")[:2]
    copies = records(client, "/hard_copies", location_id=source["id"])
    already = records(client, "/hard_copies", location_id=target["id"])
    assert copies
    answer = client.patch(f"/hard_copies/locations/{source['id']}/merge", json={"into_id": target["id"]})
    assert (answer.status_code, answer.json()) == (200, target)
    assert source["id"] not in [record["id"] for record in records(client, "/hard_copies/locations")]
    moved = {record["id"] for record in records(client, "/hard_copies", location_id=target["id"])}
    assert moved == {record["id"] for record in copies + already}


def test_authorities_are_merged(client: httpx.Client) -> None:
    """service.md#other-resources: authorities can be merged. Assumption: the names of the merged one become variants."""
    source = new(client, "/authorities", name="Jane Austen", variants=["A Lady", "Austen, Jane"])
    target = new(client, "/authorities")
    answer = client.patch(f"/authorities/{source['id']}/merge", json={"into_id": target["id"]})
    assert answer.json() == {**target, "variants": ["Jane Austen", "A Lady"]}
    assert records(client, "/authorities", name="jane austen") == []
    assert records(client, "/authorities", name="AUSTEN, JANE") == [answer.json()]


def test_a_task_is_completed(library: Library, client: httpx.Client) -> None:
    """service.md#other-resources: tasks can be completed. Assumption: PATCH /tasks/:id/complete; the first completion counts."""
    task = new(client, "/tasks")
    assert task["completed_at"] is None
    assert client.patch(f"/tasks/{task['id']}", json={"completed_at": "2026-01-01T00:00:00Z"}).status_code == 422
    answer = client.patch(f"/tasks/{task['id']}/complete")
    assert (answer.status_code, answer.json()) == (200, {**task, "completed_at": "2027-01-15T08:00:00Z"})
    library.clock.time += 60
    assert client.patch(f"/tasks/{task['id']}/complete").json() == answer.json()


@pytest.mark.parametrize("path", [*LISTS, "/users/avatar/presign"])
def test_v2_has_no_other_resources(library: Library, path: str) -> None:
    """service.md#v2: v2 has publications and assets, and none of these resources."""
    assert library.v2().get(path).status_code == 404
