"""service.md#overview: every tenant is a library of its own, although all count their ids from 1 in one state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from sandbox.app import Sandbox
from sandbox.settings import Settings
from sandbox.state.database import Database
from sandbox.tenants import Account, open_tenant
from tests.sandbox.conftest import ORIGIN, FakeClock

LISTS = ("publications", "users", "hard_copies", "hard_copies/locations", "authorities", "collections", "tasks")
MISSING = (404, "RecordNotFound")

Answer = tuple[int, str | None]


@pytest.fixture
def client(clock: FakeClock) -> Iterator[Callable[..., httpx.Client]]:
    """Returns clients for the libraries `full` and `second`, with 60 records each, and `empty`."""
    database = Database()
    tenants = {
        name: open_tenant(
            database, name, records=records, account=Account(), settings=Settings(requests_per_minute=0), clock=clock
        )
        for name, records in {"full": 60, "second": 60, "empty": 0}.items()
    }
    transport = httpx.WSGITransport(app=Sandbox(tenants))

    def opened(tenant: str, version: str = "v3", token_of: str | None = None) -> httpx.Client:
        with httpx.Client(transport=transport) as control:
            answer = control.post(f"{ORIGIN}/_control/tokens", json={"tenant": token_of or tenant})
        signed: dict[str, Any] = {"headers": {"Authorization": f"Bearer {answer.json()['access_token']}"}}
        if version == "v2":
            signed = {"auth": (Account().email, Account().password)}
        return httpx.Client(base_url=f"{ORIGIN}/{tenant}/api/{version}", transport=transport, **signed)

    yield opened
    database.close()


def uploaded(client: httpx.Client) -> dict[str, str]:
    """Uploads a file and returns it as payloads name it."""
    form = client.get("/assets/presign").json()
    with httpx.Client(transport=client._transport) as plain:
        assert plain.post(form["url"], data=form["fields"], files={"file": b"bytes"}).status_code == 204
    return {"id": form["fields"]["key"].removeprefix("cache/"), "storage": "cache"}


def attached(client: httpx.Client) -> int:
    """Attaches a file to the first publication and returns the asset's id."""
    number: int = client.post("/assets", json={"publication_id": 1, "file": uploaded(client)}).json()["id"]
    return number


def contents(client: httpx.Client) -> list[list[dict[str, Any]]]:
    """Returns the first pages of every list; assets are a part of their publications."""
    return [client.get(f"/{name}?per_page=50").json()["records"] for name in LISTS]


def result(answer: httpx.Response) -> Answer:
    return answer.status_code, answer.json().get("error", {}).get("code")


def test_what_one_library_changes_stays_in_it(client: Callable[..., httpx.Client]) -> None:
    """Every operation of one library on ids that another has, too."""
    full, second = client("full"), client("second")
    asset, file = attached(full), uploaded(full)
    assert attached(second) == asset
    before = contents(second)
    for method, path, payload in (
        ("PATCH", "/publications/1", {"title": "Changed", "abstract": None}), ("DELETE", "/publications/2", None),
        ("PATCH", f"/assets/{asset}", {"name": "Changed", "file": file, "publication_id": 3}), ("DELETE", f"/assets/{asset}", None),
        ("PATCH", "/users/2", {"name": "Changed", "roles": []}), ("DELETE", "/users/3", None),
        ("PATCH", "/hard_copies/1", {"note": "Changed"}), ("DELETE", "/hard_copies/2", None),
        ("PATCH", "/hard_copies/locations/1", {"note": "Changed"}), ("PATCH", "/hard_copies/locations/1/merge", {"into_id": 2}),
        ("PATCH", "/authorities/1", {"name": "Changed"}), ("PATCH", "/authorities/1/merge", {"into_id": 2}),
        ("PATCH", "/collections/1", {"name": "Changed"}), ("DELETE", "/collections/1", None),
        ("PATCH", "/tasks/1", {"title": "Changed"}), ("PATCH", "/tasks/1/complete", None),
    ):  # fmt: skip
        assert full.request(method, path, json=payload).status_code == 200, (method, path)
    assert contents(second) == before


def test_a_library_knows_its_own_ids_only(client: Callable[..., httpx.Client]) -> None:
    """Reading, changing, deleting and referring: what another library has is 404 `RecordNotFound`."""
    full, empty = client("full"), client("empty")
    asset, file = attached(full), uploaded(empty)
    category = full.post("/publications", json={"title": "A", "categories": [{"name": "Of another"}]}).json()[
        "categories"
    ][0]
    before = contents(full)
    for method, path, payload in (
        ("GET", "/publications/1", None), ("PATCH", "/publications/1", {"title": "Changed"}), ("DELETE", "/publications/1", None),
        ("GET", f"/assets/{asset}", None), ("PATCH", f"/assets/{asset}", {"name": "Changed"}), ("DELETE", f"/assets/{asset}", None),
        ("GET", "/users/2", None), ("PATCH", "/users/2", {"name": "Changed"}), ("DELETE", "/users/2", None),
        ("PATCH", "/hard_copies/1", {}), ("DELETE", "/hard_copies/1", None),
        ("PATCH", "/hard_copies/locations/1", {}), ("PATCH", "/hard_copies/locations/1/merge", {"into_id": 2}),
        ("PATCH", "/authorities/1", {}), ("PATCH", "/authorities/1/merge", {"into_id": 2}),
        ("PATCH", "/collections/1", {}), ("DELETE", "/collections/1", None),
        ("PATCH", "/tasks/1", {}), ("PATCH", "/tasks/1/complete", None),
        ("POST", "/publications", {"title": "A", "categories": [{"id": category["id"]}]}),
        ("POST", "/publications", {"title": "A", "contributor": {"id": 2}}),
        ("POST", "/assets", {"publication_id": 1, "file": file}),
        ("POST", "/hard_copies", {"publication_id": 1}), ("POST", "/collections", {"name": "A", "publication_ids": [1]}),
        ("POST", "/tasks", {"title": "A", "publication_id": 1}), ("POST", "/tasks", {"title": "A", "assignee_id": 2}),
    ):  # fmt: skip
        assert result(empty.request(method, path, json=payload)) == MISSING, (method, path, payload)
    assert [len(records) for records in contents(empty)] == [0, 1, 0, 0, 0, 0, 0]
    assert empty.get("/publications").headers["X-Total"] == "0"
    assert contents(full) == before


def test_a_category_of_another_library_is_created_here(client: Callable[..., httpx.Client]) -> None:
    """service.md#references: `{name}` finds a category of this library, in both versions."""
    client("full").post("/publications", json={"title": "A", "categories": [{"name": "Known there"}]})
    for version in ("v2", "v3"):
        answer = client("empty", version).post(
            "/publications", json={"title": "A", "categories": [{"name": "Known there"}]}
        )
        assert [each["name"] for each in answer.json()["categories"]] == ["Known there"]


def test_a_token_and_a_file_are_of_one_library(client: Callable[..., httpx.Client]) -> None:
    """service.md#oauth: a token is for one target resource. An upload is in the bucket of its library."""
    assert client("full", token_of="second").get("/publications").status_code == 401
    wrong = client("second").post("/assets", json={"publication_id": 1, "file": uploaded(client("full"))})
    assert result(wrong) == (404, "StorageNotFound")
