"""A library of version 3 with everything in it, and what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.backup.flow import Backup
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.settings.loading import load_settings
from pipelines.settings.tenant import SCOPES
from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.other_resources.signing import sign_in
from tests.migration.moving import CONFIG, Desk
from tests.sandbox.process import SandboxProcess

OTHERS = ("authorities", "users", "collections", "locations", "hard_copies", "tasks")
EVERYTHING = ("publications", *OTHERS)
RECORDS = 40
V3 = 'client_id = "test"\nclient_auth = "none"'

CONTRIBUTED: dict[int, tuple[str, dict[str, Any]]] = {
    1: ("Tobias", {}),
    2: ("Marta", {"organization": {"id": 1}}),
    3: ("Yuki", {}),
    4: ("Yuki", {}),
}
"""Publications of the source → who contributed them, and what else they refer to; the first one is in the targets, too."""

Records = dict[int, dict[str, Any]]


def a_desk(folder: Path, sandbox: SandboxProcess, target: str) -> Desk:
    config = folder / "bookferry.toml"
    addresses = {"source": sandbox.base_url(), "target": sandbox.base_url(target)}
    config.write_text(CONFIG.format(**addresses, api="v3", signed=V3))
    sign_in(config, "old", sandbox, "library", SCOPES)
    return Desk(config, sandbox, target, sign_in(config, "new", sandbox, target, SCOPES))


def back_up(desk: Desk, run: str, tenant: str = "old") -> Snapshot:
    with Backup(load_settings(desk.config), with_files=False) as library:
        for resource in EVERYTHING:
            library.read_raw(tenant, run, resource)
            library.stage(tenant, run, resource)
        library.fetch_files(tenant, run)
        return library.publish(tenant, run)


def listed(desk: Desk, resource: str, library: str | None = None) -> Records:
    """Every record of a resource, by id."""
    path = {"locations": "hard_copies/locations"}.get(resource, resource)
    there = Desk(desk.config, desk.sandbox, library or desk.target, token_of(desk, library) if library else desk.token)
    records: Records = {}
    page = 1
    while found := there.call("GET", f"{path}?per_page=50&page={page}")["records"]:
        records |= {one["id"]: one for one in found}
        page += 1
    return records


def token_of(desk: Desk, library: str) -> str:
    return str(desk.sandbox.control("POST", "tokens", {"tenant": library})["access_token"])


def named(records: Records, name: str | None, field: str = "name") -> dict[str, Any]:
    [found] = [one for one in records.values() if one[field] == name]
    return found


def rows(plan: Plan, resource: str, *actions: str) -> list[PlanRow]:
    return list(plan.rows(*actions, resources=[resource]))


def titles(desk: Desk, library: str | None = None) -> dict[int, str]:
    return {number: one["title"] for number, one in listed(desk, "publications", library).items()}


def contributors(desk: Desk, library: str | None = None) -> dict[str, str]:
    """Title of a publication → address of who contributed it."""
    people = {number: one["email"] for number, one in listed(desk, "users", library).items()}
    found = listed(desk, "publications", library).values()
    return {one["title"]: people[one["contributor"]["id"]] for one in found if one["contributor"]}


def without(desk: Desk, name: str) -> None:
    """Delete a user of the target."""
    [number] = [number for number, one in listed(desk, "users").items() if one["name"].startswith(name)]
    desk.call("DELETE", f"users/{number}")
