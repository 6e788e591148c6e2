"""A service other than the sandbox, with other variations: bare arrays, other envelopes, no paging headers, more fields.

The service documents the list of publications only: paths, parameters and payloads of hard copies, locations, authorities, collections and
tasks are not shown (service.md#not-shown).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pipelines.migration.flow import Migration
from pipelines.settings.config_file import load_settings
from tests.backup.other_resources.conftest import TwoVersionRunner, rows
from tests.service.scripted import Answer, Received, ScriptedServer

Serve = Callable[..., tuple[TwoVersionRunner, ScriptedServer]]

SIGNED = "https://files.example/f?Signature=abc"
NOT_FOUND = Answer({"error": {"code": "RecordNotFound", "message": "Requested record not found"}}, status=404)
PUBLICATIONS = [
    {
        "id": number,
        "title": f"Title {number}",
        "publishable_type": "Report",
        "published_on": "2020-02-29",
        "identifiers": [{"type": "handle", "value": f"2027/{number}", "verified": True}],
        "categories": [{"id": 7, "name": "Physics", "parent": {"id": 1}}],
        "contributor": {"id": 3, "name": "C. Ontributor", "url": SIGNED},
        "organization": 9,
        "language": "en",
        "assets": [{"id": number, "publication_id": number, "name": "f.pdf", "file": {"id": "f", "storage": "store"}}],
    }
    for number in range(1, 71)
]
USERS = [
    {
        "id": "11",
        "email": "a@library.example",
        "name": "A",
        "roles": [{"name": "admin", "since": "2020-01-01"}],
        "avatar": {"url": SIGNED, "id": "a"},
    },
    {"id": "12", "email": "b@library.example", "name": None, "roles": []},
]
COPIES = [
    {"id": number, "publication_id": 1, "location": {"id": 5, "name": "Stacks"}, "acquired_on": "spring 1984"}
    for number in range(1, 131)
]
TASKS = [{"id": "0b6e-a1", "title": "Dust"}, {"id": "0b6e-a2", "title": "Dust again"}]


def service(request: Received) -> Answer:
    """Publications with X-Total alone, users under their own name, hard copies as one bare array, tasks by pages of ten, no collections."""
    resource = request.path.removeprefix("/api/v3/")
    first = (int(request.query["page"]) - 1) * int(request.query["per_page"])
    if resource == "publications":
        part = PUBLICATIONS[first : first + 50]
        return Answer({"records": part, "meta": {"took": 3}}, headers={"X-Total": str(len(PUBLICATIONS))})
    if resource == "tasks":
        return Answer({"data": TASKS if first == 0 else [], "links": {}})
    responses: dict[str, Any] = {
        "users": {"users": USERS, "count": 2},
        "hard_copies": COPIES,
        "hard_copies/locations": [],
        "authorities": {"result": {"rows": []}},
    }
    return Answer(responses[resource]) if resource in responses else NOT_FOUND


def test_every_existing_list_is_backed_up(serve: Serve) -> None:
    """Each list is read completely, in any form, and no page is asked for twice. A refused list is a note; an unknown form is a loss."""
    runner, server = serve(service)
    snapshot = runner.back_up()
    manifest = snapshot.manifest
    assert {name: facts.records for name, facts in manifest.resources.items()} == {
        "publications": 70,
        "users": 2,
        "hard_copies": 130,
        "locations": 0,
        "tasks": 2,
    }
    assert manifest.resources["publications"].endpoint == "publications"
    asked = [request.path.removeprefix("/api/v3/") for request in server.received]
    assert asked == [
        *("publications/all", "publications", "publications"),
        *("users", "users", "hard_copies", "hard_copies", "hard_copies/locations"),
        *["collections"] * 5,  # a further page and the first records show that the list is not there
        *["authorities"] * 11,  # in parts, too, as far as none is a list
        *("tasks", "tasks"),
        "assets/1",  # an address of the one content that no record has an address of
    ]
    assert all(facts.complete for facts in manifest.resources.values()), manifest.problems
    assert not manifest.complete
    assert {name: (one.status, one.partial) for name, one in manifest.unreadable.items()} == {
        "collections": (404, False),
        "authorities": (None, True),
    }
    of_authorities, of_files = manifest.problems
    assert "authorities: could not be read" in of_authorities
    assert "something that is not a listing" in of_authorities
    assert "files: 70 of 70 could not be fetched" in of_files
    assert any(note.startswith("collections: could not be read") for note in manifest.notes)
    without_total = {note.partition(":")[0] for note in manifest.notes if "sent no X-Total" in note}
    assert without_total == {"users", "hard_copies", "locations", "tasks"}

    first, *_ = rows(snapshot, "publications")
    assert (first["contributor_id"], first["contributor_name"], first["organization_id"]) == (3, "C. Ontributor", None)
    assert json.loads(first["residue"]) == {
        "categories[0].parent": {"id": 1},
        "contributor.url": "https://files.example/f?(signed)",
        "identifiers[0].verified": True,
        "language": "en",
        "organization": 9,
    }
    identifier, *_ = rows(snapshot, "publication_identifiers")
    assert (identifier["type"], identifier["value"], identifier["rule"]) == ("handle", "2027/1", "unknown_type")
    assert [row["id"] for row in rows(snapshot, "users")] == [11, 12]
    assert [row["role"] for row in rows(snapshot, "user_roles")] == ["admin"]
    copy, *_ = rows(snapshot, "hard_copies")
    assert (copy["publication_id"], copy["acquired_on"], copy["acquired_on_raw"]) == (1, None, "spring 1984")
    assert (copy["location_id"], copy["location_name"], copy["residue"]) == (5, "Stacks", None)
    assert snapshot.manifest.residue["hard_copies"] == {}
    facts = manifest.resources["tasks"]
    assert (facts.records, facts.distinct_ids, facts.without_id, facts.complete) == (2, 2, 0, True)
    assert any("ids that are texts: there, the column id of the table is empty" in note for note in facts.notes)
    assert [(row["id"], row["id_raw"]) for row in rows(snapshot, "tasks")] == [(None, "0b6e-a1"), (None, "0b6e-a2")]


def test_a_plan_knows_records_by_ids_that_are_texts(serve: Serve) -> None:
    runner = serve(service)[0]
    snapshot = runner.back_up("publications", "users", "tasks")
    with Migration(load_settings(runner.config)) as migration:
        plan = migration.plan(snapshot, "new", resources=["tasks"])
    assert plan.facts.counts["tasks"] == {"unchanged": 2}
    assert [row.target_id for row in plan.rows(resources=["tasks"])] == ["0b6e-a1", "0b6e-a2"]


@pytest.mark.long
@pytest.mark.parametrize("ids", [["a", "a"], ["a", 1, "a", None]])
def test_text_ids_that_come_twice(serve: Serve, ids: list[object]) -> None:
    """A list with a repeated record is not proved, whatever its ids are."""

    def script(request: Received) -> Answer:
        records = [{"id": one} for one in ids] if request.query["page"] == "1" else []
        return Answer(PUBLICATIONS[:1] if request.path.endswith("/publications") else records)

    manifest = serve(script)[0].back_up("publications", "tasks").manifest
    assert not manifest.complete
    assert any("tasks: 1 record was listed twice, for example id a." in one for one in manifest.problems)


def _five_pages_of_users(request: Received) -> Answer:
    if not request.path.endswith("/users"):
        return service(request)
    page = int(request.query["page"])
    return Answer([{"id": number} for number in range(50 * page, 50 * page + 50)] if page < 5 else [])


@pytest.mark.long
def test_pages_without_headers_are_read_to_the_empty_one(serve: Serve) -> None:
    """Without `Link` and `X-Total`, the list ends with an empty page (service.md#lists)."""
    manifest = serve(_five_pages_of_users)[0].back_up("publications", "users").manifest
    assert manifest.resources["users"].records == 200
