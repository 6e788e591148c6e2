"""Undocumented fields of publications that refer to other records lead to what those became, never to a number of the other library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.migration.model.actions import Action
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import (
    ALL_RESOURCES,
    back_up,
    make_pair,
    plan_rows,
    records_of,
    small_sandbox,
    token_of,
)
from tests.migration.test_additional_fields import DOCUMENTED, learned
from tests.sandbox.process import SandboxProcess

__all__ = ["small_sandbox"]

pytestmark = pytest.mark.long

ID_OR_NULL = {"type": ["integer", "null"]}
OBJECT_OR_NULL = {"type": ["object", "null"], "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
LINKS: dict[str, Any] = {
    "shelf_location_id": {"schema": ID_OR_NULL, "seed": [None]},
    "collection_ids": {"schema": {"type": "array", "items": {"type": "integer"}}, "seed": [[]]},
    "translation_of": {"schema": OBJECT_OR_NULL, "seed": [None]},
    "parent_id": {"schema": ID_OR_NULL, "seed": [None]},
    "reviewing_user_id": {"schema": {"type": ["string", "null"]}, "seed": [None]},
    "copies": {"schema": ID_OR_NULL, "seed": [None]},
}
"""To locations, collections, publications (by their names, and by the word), users as texts; and a number that counts."""


@pytest.fixture
def pair(sandbox: SandboxProcess, tmp_path: Path) -> LibraryPair:
    fields = {**DOCUMENTED, **LINKS}
    shapes = {"description": "follows", "resources": {"publications": {"fields": fields}}}
    for tenant in ("library", "target"):
        sandbox.control("PUT", "settings", {"tenant": tenant, "shapes": shapes})
    pair = make_pair(tmp_path, sandbox, "target")
    link(replace(pair, target="library", token=token_of(pair, "library")))
    return pair


def link(library: LibraryPair) -> None:
    """Publications that lead to each other in a circle, backwards and forwards, to every collection, a location and a user."""
    publications = [*records_of(library, "publications")]
    collections = [library.call("POST", "collections", {"name": name})["id"] for name in ("New", "Newer")]
    titles = {number: one["title"] for number, one in records_of(library, "publications").items()}
    [location, *_], [user, *_] = records_of(library, "locations"), records_of(library, "users")
    first, second, third, fourth, fifth, *_ = publications[1:]
    for number, change in {
        first: {"shelf_location_id": location, "parent_id": second, "copies": 3},
        second: {"parent_id": first, "collection_ids": [collections[1], collections[0]]},
        third: {"translation_of": {"id": first, "name": titles[first]}, "reviewing_user_id": str(user)},
        fourth: {"translation_of": {"id": fifth, "name": titles[fifth]}, "collection_ids": collections[:1]},
        fifth: {"parent_id": fifth},
    }.items():
        library.call("PATCH", f"publications/{number}", change)


def meaning(pair: LibraryPair, tenant: str | None = None) -> dict[str, dict[str, Any]]:
    """Title of a publication → where its links lead, by name."""
    names = {
        resource: {number: one[name] for number, one in records_of(pair, resource, tenant).items()}
        for resource, name in {
            "collections": "name",
            "locations": "name",
            "publications": "title",
            "users": "email",
        }.items()
    }

    def name(resource: str, value: Any) -> Any:
        number = value.get("id") if isinstance(value, dict) else value
        return None if number is None else names[resource][int(number)]

    return {
        record["title"]: {
            "location": name("locations", record["shelf_location_id"]),
            "collections": sorted(name("collections", one) for one in record["collection_ids"] or ()),
            "translation_of": name("publications", record["translation_of"]),
            "parent": name("publications", record["parent_id"]),
            "reviewer": name("users", record["reviewing_user_id"]),
        }
        for record in records_of(pair, "publications", tenant).values()
    }


def test_links_lead_to_what_the_records_became_and_are_taken_back(pair: LibraryPair) -> None:
    before = meaning(pair)
    plan = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    assert learned(plan).references == {
        "shelf_location_id": ("locations",),
        "collection_ids": ("collections",),
        "translation_of/id": ("publications",),
        "parent_id": ("publications",),
        "reviewing_user_id": ("users",),
    }
    assert learned(plan).left_out == {"copies": "unknown_reference"}, "a number, or numbers of copies"
    linked = {
        row.source_id: {name for name, one in row.references.items() if one.later}
        for row in plan_rows(plan, "publications", Action.CREATE)
        if any(one.later for one in row.references.values())
    }
    assert sorted(map(sorted, linked.values())) == [
        ["collection_ids"],
        ["collection_ids", "translation_of/id", "translation_of/name"],
        ["parent_id"],
        ["parent_id"],
    ]
    applied = pair.apply(plan)
    requests = applied.requests
    assert [failure.problem for failure in applied.failures] == []
    assert (applied.linked, requests) == (len(linked), plan.facts.requests)
    assert meaning(pair) == meaning(pair, "library")
    with pair.migration() as migration:
        assert migration.verify(plan).as_planned
    second = pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES)
    assert second.facts.empty, second.facts.counts
    with pair.migration() as migration:
        undone = migration.undo(plan, really=True)
    assert {one.resource for one in undone.findings} <= {"authorities", "tasks"}
    assert meaning(pair) == before


def test_a_link_to_what_is_not_moved_is_not_sent(pair: LibraryPair) -> None:
    """Its number would name another record of the target, or none."""
    plan = pair.plan(back_up(pair, "run"))
    assert {*learned(plan).references} == {"parent_id", "translation_of/id"}
    links = {"shelf_location_id": "link", "collection_ids": "link", "reviewing_user_id": "link"}
    assert learned(plan).left_out == {**links, "copies": "unknown_reference"}
    applied = pair.apply(plan)
    assert {finding.field for finding in applied.findings} >= {*links, "copies"}
    assert not applied.complete
    assert [failure.problem for failure in applied.failures] == []
    found, wanted = meaning(pair), meaning(pair, "library")
    for title, one in wanted.items():
        assert found[title] == {**one, "location": None, "collections": [], "reviewer": None}
    later = pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES)
    pair.apply(later)
    assert meaning(pair) == wanted
    assert pair.plan(back_up(pair, "third"), resources=ALL_RESOURCES).facts.empty


def test_a_link_leads_to_the_record_that_is_created_beside_one_of_the_same_name(pair: LibraryPair) -> None:
    """Where the publications of a collection tell it from others, they do so as well before the publications are planned."""
    fields = {"label": {"from": "name"}, "kept_publications": {"from": "publication_ids"}}
    of_publications = {**DOCUMENTED, "collection_ids": LINKS["collection_ids"]}
    shapes = {"publications": {"fields": of_publications}, "collections": {"fields": fields}}
    for tenant in ("library", "target"):
        settings = {"tenant": tenant, "shapes": {"description": "follows", "resources": shapes}}
        pair.sandbox.control("PUT", "settings", settings)
    source = replace(pair, target="library", token=token_of(pair, "library"))
    publication, title = [(number, one["title"]) for number, one in records_of(source, "publications").items()][7]
    collection = source.call("POST", "collections", {"label": "Same", "kept_publications": [publication]})["id"]
    source.call("PATCH", f"publications/{publication}", {"collection_ids": [collection]})
    there = pair.call("POST", "collections", {"label": "Same", "kept_publications": []})["id"]
    plan = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    [row] = [row for row in plan_rows(plan, "collections") if row.source_id == collection]
    assert row.action == Action.CREATE
    pair.apply(plan)
    [linked] = [one for one in records_of(pair, "publications").values() if one["title"] == title]
    [made] = [one for one in records_of(pair, "collections").values() if one["label"] == "Same" and one["id"] != there]
    assert linked["collection_ids"] == [made["id"]]
    assert pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES).facts.empty
