"""A service other than the sandbox, with other variations: bare arrays, other envelopes, no paging headers, more fields.

The service documents the list of publications only: paths, parameters and payloads of hard copies, locations, authorities, collections and
tasks are not shown (service.md#not-shown).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.settings.config_file import load_settings
from pipelines.sign_in_health import who_am_i
from pipelines.state.local import LocalState
from tests.backup.other_resources.conftest import Serve, rows
from tests.service.scripted import Answer, Received

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
    paths = [request.path.removeprefix("/api/v3/") for request in server.received]
    assert paths == [
        *("publications/all", "publications", "publications"),
        *("users", "users", "hard_copies", "hard_copies", "hard_copies/locations"),
        *["collections"] * 6,  # two further pages and the first records show that the list is not there
        *["authorities"] * 6,  # likewise that none of them is a list
        *("tasks", "tasks"),
        "assets/1",  # an address of the one content that no record has an address of
    ]
    assert all(facts.complete for facts in manifest.resources.values()), manifest.problems
    assert not manifest.complete
    assert {name: (refusal.status, refusal.partial) for name, refusal in manifest.unreadable.items()} == {
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

    [identifier, *_], [copy, *_] = rows(snapshot, "publication_identifiers"), rows(snapshot, "hard_copies")
    assert (identifier["type"], identifier["value"], identifier["rule"]) == ("handle", "2027/1", "unknown_type")
    assert (copy["publication_id"], copy["acquired_on"], copy["acquired_on_raw"]) == (1, None, "spring 1984")
    assert [row["role"] for row in rows(snapshot, "user_roles")] == ["admin"]
    facts = manifest.resources["tasks"]
    assert (facts.records, facts.distinct_ids, facts.without_id, facts.complete) == (2, 2, 0, True)
    assert any("with a text as id: there, the column id of the table is empty" in note for note in facts.notes)
    assert [(row["id"], row["id_raw"]) for row in rows(snapshot, "tasks")] == [(None, "0b6e-a1"), (None, "0b6e-a2")]


@pytest.mark.parametrize(
    "answer",
    [
        b'{"id": 7, "name": "Ada \\ud800", "roles": "admin"}',
        b'{"user": {"id": 7, "name": "Ada", "roles": ["admin"]}}',
        b'{"id": 7, "name": "Ada", "user": {"id": 8}}',
    ],
)
def test_who_is_signed_in_is_named(serve: Serve, tmp_path: Path, answer: bytes) -> None:
    runner, _server = serve(lambda _request: Answer(answer))
    person = who_am_i(load_settings(runner.config), "new", state=LocalState(tmp_path / "state.db"))
    assert (person["id"], person["name"].split()[0]) == (7, "Ada")
