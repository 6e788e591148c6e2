"""What people do to records of another resource between a plan and its apply (I8)."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.errors import StopError
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import Plan
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import plan_rows, records_of


def plan_changes(pair: LibraryPair, snapshot: Snapshot) -> tuple[Plan, dict[int, str]]:
    """Returns a plan that replaces the descriptions of two collections of the target, and these by id in the target."""
    numbers = {record["name"]: number for number, record in records_of(pair, "collections").items()}
    records = [record for record in records_of(pair, "collections", "library").values() if record["name"] in numbers]
    made = {numbers[record["name"]]: record for record in records[:2]}
    for number in made:
        pair.call("PATCH", f"collections/{number}", {"description": "By a librarian"})
    plan = pair.plan(snapshot, resources=["collections"], overwrite=True)
    planned = {
        row.target_id: row.payload["description"]
        for row in plan_rows(plan, "collections", Action.PATCH)
        if row.target_id in made
    }
    assert planned == {number: record["description"] for number, record in made.items()}
    return plan, planned


def reshape(pair: LibraryPair, description: str, fields: dict[str, Any], **form: Any) -> None:
    """Give the collections of the target these fields and forms."""
    pair.sandbox.reshape({"collections": {"fields": fields, **form}}, pair.target, description=description)


def test_a_plan_is_refused_once_people_changed_or_deleted_what_it_would_replace(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    plan, (edited, deleted) = plan_changes(pair, snapshot)
    pair.call("PATCH", f"collections/{edited}", {"description": "Edited again, just now"})
    pair.call("DELETE", f"collections/{deleted}")
    writes = len(pair.writes())
    with pytest.raises(StopError, match="stale") as stale:
        pair.apply(plan)
    assert f"was to change {edited}, and people changed that" in str(stale.value)
    assert f"was to change {deleted}, which is not there any more" in str(stale.value)
    assert len(pair.writes()) == writes
    assert records_of(pair, "collections")[edited]["description"] == "Edited again, just now"


def test_a_plan_is_refused_once_what_it_found_by_name_has_another_one(pair: LibraryPair, snapshot: Snapshot) -> None:
    """What refers to it would lead elsewhere. Locations are read again, too, although nothing writes them."""
    plan = pair.plan(snapshot, resources=["hard_copies", "collections"])
    assert plan.facts.read_before_writing == ["publications", "collections", "hard_copies", "locations"]
    row = plan_rows(plan, "collections", Action.UNCHANGED)[0]
    pair.call("PATCH", f"collections/{row.target_id}", {"name": "Renamed meanwhile"})
    with pytest.raises(
        StopError, match=f"collections {row.source_id} was found as {row.target_id}, which has another name"
    ):
        pair.apply(plan)


@pytest.mark.long
@pytest.mark.parametrize("resource", ["publications", "collections"])
def test_a_plan_is_stale_once_its_mapping_file_was_changed(
    pair: LibraryPair, snapshot: Snapshot, resource: str
) -> None:
    """A file that came after the plan is none that it follows."""
    resources = [resource] if resource != "publications" else []
    unmapped = pair.plan(snapshot, resources=resources)
    mapping = pair.map(snapshot, resources)
    plan = pair.plan(snapshot, resources=resources)
    mapping.path.write_text(f"{mapping.text}\n# An afterthought\n")
    writes = len(pair.writes())
    advice = f"bookferry migrate plan old new{' --resources collections' if resources else ''}`"
    with pytest.raises(
        StopError, match=f"{mapping.path.name} was changed .* Nothing was written. Make a new plan: `{advice}"
    ):
        pair.apply(plan)
    assert len(pair.writes()) == writes
    assert pair.apply(unmapped).failed == 0


FIELDS: dict[str, dict[str, Any]] = {
    "name": {"from": "name", "required": True},
    "description": {"from": "description"},
    "publication_ids": {"from": "publication_ids"},
}
"""The collections of the sandbox."""

ADDED = {"language": {"schema": {"type": ["string", "null"]}, "seed": ["en", None]}}


def renamed(old: str, new: str) -> dict[str, dict[str, Any]]:
    """The fields of collections, one of them with another name."""
    return {(new if name == old else name): field for name, field in FIELDS.items()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("fields", "description"),
    [({**FIELDS, **ADDED}, "follows"), (renamed("publication_ids", "books"), "missing")],
    ids=["added", "renamed"],
)
def test_a_field_that_the_plan_does_not_write_makes_it_not_stale(
    pair: LibraryPair, snapshot: Snapshot, fields: dict[str, Any], description: str
) -> None:
    """Stale is only what has to be: the service got a field, or renamed one that the plan leaves alone."""
    reshape(pair, description, FIELDS)
    pair.apply(pair.plan(snapshot, resources=["collections"]))
    plan, planned = plan_changes(pair, snapshot)
    reshape(pair, description, fields)
    before = pair.requests()
    result = pair.apply(plan)
    assert (result.patched, result.failed) == (2, 0)
    assert pair.requests() - before == plan.facts.requests, "what nobody doubts costs no request"
    collections = records_of(pair, "collections")
    assert {number: collections[number]["description"] for number in planned} == planned


DEMANDED = {"code": {"schema": {"type": "string"}, "seed": ["A"], "required": True}}


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        (renamed("description", "about"), False),
        pytest.param(renamed("description", "about"), True, marks=pytest.mark.long),
        ({**FIELDS, **DEMANDED}, False),
    ],
    ids=["renamed", "renamed and patched", "demanded"],
)
def test_a_plan_is_stale_once_the_description_has_other_fields(
    pair: LibraryPair, snapshot: Snapshot, fields: dict[str, dict[str, Any]], *, changes: bool
) -> None:
    """Another name of what it writes, or one more that is demanded, although the records of the target show nothing of it."""
    reshape(pair, "follows", FIELDS)
    if changes:
        pair.apply(pair.plan(snapshot, resources=["collections"]))
        plan, _planned = plan_changes(pair, snapshot)
    else:
        plan = pair.plan(snapshot, resources=["collections"])
    reshape(pair, "follows", fields)
    collections, writes = records_of(pair, "collections"), len(pair.writes())
    with pytest.raises(StopError, match="it takes collections otherwise, by its description"):
        pair.apply(plan)
    assert len(pair.writes()) == writes
    assert records_of(pair, "collections") == collections
