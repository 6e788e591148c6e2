"""A library of version 3 with records of every resource, and helpers to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.scopes import SCOPES
from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.other_resources.signing import sign_in
from tests.migration.library_pair import CONFIG, LibraryPair, Records
from tests.sandbox.process import SandboxProcess

OTHER_RESOURCES = ("authorities", "users", "collections", "locations", "hard_copies", "tasks")
ALL_RESOURCES = ("publications", *OTHER_RESOURCES)
RECORDS = 20
V3 = 'client_id = "test"\nclient_auth = "none"'

CONTRIBUTED: dict[int, tuple[str, dict[str, Any]]] = {
    1: ("Tobias", {}),
    2: ("Marta", {"organization": {"id": 1}}),
    3: ("Yuki", {}),
    4: ("Yuki", {}),
}
"""Publication of the source → its contributor, and its other references. The targets have the first publication, too."""

WITH_VARIANTS, VARIANTS = "Yoshua Bengio", ["Bengio, Y.", "Bengio, Yoshua"]
"""An authority of the source that is an author of a publication, and its variants."""

FEW = 12


@pytest.fixture(name="sandbox")
def small_sandbox() -> Iterator[SandboxProcess]:
    """A library and a target with its first publication, both new, because the tests change them."""
    tenants = (f"--tenant=library=real:{FEW}", "--tenant=target=real:1")
    with SandboxProcess(*tenants, "--requests-per-minute", "0") as process:
        yield process


@pytest.fixture(name="pair")
def small_pair(sandbox: SandboxProcess, tmp_path: Path) -> LibraryPair:
    """The two libraries of that sandbox."""
    return make_pair(tmp_path, sandbox, "target")


def make_pair(folder: Path, sandbox: SandboxProcess, target: str) -> LibraryPair:
    config = folder / "bookferry.toml"
    addresses = {"source": sandbox.base_url(), "target": sandbox.base_url(target)}
    config.write_text(CONFIG.format(**addresses, api="v3", signed=V3))
    sign_in(config, "old", sandbox, "library", SCOPES)
    return LibraryPair(config, sandbox, target, sign_in(config, "new", sandbox, target, SCOPES))


def back_up(pair: LibraryPair, run: str, tenant: str = "old", *, files: bool = False) -> Snapshot:
    return pair.back_up(run, tenant=tenant, files=files, resources=ALL_RESOURCES)


def records_of(pair: LibraryPair, resource: str, library: str | None = None) -> Records:
    """Every record of a resource, of the target by default, by id."""
    return (pair.library(library) if library else pair).records(resource)


def record_named(records: Records, name: str | None, field: str = "name") -> dict[str, Any]:
    [record] = [record for record in records.values() if record[field] == name]
    return record


def plan_rows(plan: Plan, resource: str, *actions: str) -> list[PlanRow]:
    return list(plan.rows(*actions, resources=[resource]))


def titles(pair: LibraryPair, library: str | None = None) -> dict[int, str]:
    return {number: record["title"] for number, record in records_of(pair, "publications", library).items()}


def contributors(pair: LibraryPair, library: str | None = None) -> dict[str, str]:
    """Title of a publication → e-mail address of its contributor."""
    addresses = {number: user["email"] for number, user in records_of(pair, "users", library).items()}
    publications = records_of(pair, "publications", library).values()
    return {
        publication["title"]: addresses[publication["contributor"]["id"]]
        for publication in publications
        if publication["contributor"]
    }


UNDELETED = ("authorities", "tasks")
"""The service deletes no authorities and no tasks (service.md#other-resources)."""

REFERENCES = {"publication_id": "publications", "location_id": "locations", "assignee_id": "users"}


def contents_of(pair: LibraryPair, library: str | None = None) -> Counter[str]:
    """The records of a library without their ids; references by name."""
    resources = {resource: records_of(pair, resource, library) for resource in ALL_RESOURCES}
    names = {
        resource: {
            number: record.get("title") or record.get("email") or record.get("name")
            for number, record in records.items()
        }
        for resource, records in resources.items()
    }

    def describe(resource: str, record: dict[str, object]) -> str:
        plain = {key: value for key, value in record.items() if key not in {"id", "completed_at", "assets", "cover"}}
        for key, named_resource in REFERENCES.items():
            if plain.get(key) is not None:
                plain[key] = names[named_resource][plain[key]]
        if "publication_ids" in plain:
            plain["publication_ids"] = sorted(names["publications"][number] for number in record["publication_ids"])
        if plain.get("contributor"):
            plain["contributor"] = names["users"][record["contributor"]["id"]]
        plain["categories"] = sorted(category["name"] for category in record.get("categories", ()))
        return f"{resource} {sorted(plain.items())}"

    return Counter(describe(resource, record) for resource, records in resources.items() for record in records.values())


def delete_user(pair: LibraryPair, name: str) -> None:
    """Delete a user of the target."""
    [number] = [number for number, user in records_of(pair, "users").items() if user["name"].startswith(name)]
    pair.call("DELETE", f"users/{number}")
