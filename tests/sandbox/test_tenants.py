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

pytestmark = pytest.mark.long


LISTS = ("publications", "users", "hard_copies", "hard_copies/locations", "authorities", "collections", "tasks")


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
