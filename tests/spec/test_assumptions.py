"""docs/assumptions.md: that it is whole and names nothing that is not there, and the tests of assumptions that no other file carries."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import errors
from sandbox.__main__ import _parser as sandbox_options
from sandbox.__main__ import _settings as sandbox_settings
from sandbox.app import VERSIONS
from sandbox.settings import Settings
from tests.spec.conftest import Library
from tests.spec.program import register
from tests.spec.test_publication_record import create, refusal

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "assumptions.md"

PARTS = ("Assumed", "Shown wrong by", "Sandbox", "Client", "Test", "Switch")
NONE = "—"
MAY_BE_NONE = {"Client", "Switch"}

NOT_SHOWN = [
    "Fields of publication beyond those above: not shown.",
    "Fields of hard copy, hard copy location, collection, authority, task and quality review records: not shown.",
    "Fields of the asset record beyond those above: not shown.",
    "States and transitions of any resource: not shown.",
    (
        "A backup endpoint `/publications/all` returns all publications page by page. "
        "The version it belongs to, and its parameters: not shown."
    ),
    (
        "Exact path shapes (ids, merge sub-paths), query parameters and payloads of hard copies, locations, authorities, "
        "collections and tasks: not shown."
    ),
    "Query parameters of list endpoints other than publications: not shown.",
    "Response bodies for create, update and delete calls other than those described: not shown.",
    "Request shape for the refresh grant: not shown.",
    "Endpoints for creating, rotating and revoking administrator-issued clients: not shown.",
    "Events, webhooks or notifications sent by the service: not shown.",
    "Further error codes beyond `RecordNotFound` and `InsufficientScope`: not shown.",
    "The number of daily registrations and how the request rate is enforced: not shown.",
]
"""Every sentence of the document that says so, in its order."""


@dataclass(frozen=True)
class Entry:
    """One assumption of the page."""

    id: str
    title: str
    sentence: str
    parts: dict[str, str]

    def references(self, part: str) -> list[str]:
        """What stands between backticks."""
        return re.findall(r"`([^`]+)`", self.parts[part])


def _entries() -> list[Entry]:
    found = []
    for block in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading, _, rest = block.partition("\n")
        rest = re.split(r"^## ", rest, flags=re.MULTILINE)[0]
        name, _, title = heading.partition(" ")
        sentence = " ".join(re.findall(r"^> (.+)$", rest, flags=re.MULTILINE))
        parts = re.findall(r"^- \*\*([^*]+):\*\* (.*)$", rest, flags=re.MULTILINE)
        assert len(parts) == len(dict(parts)), name
        found.append(Entry(name, title, sentence, dict(parts)))
    return found


ENTRIES = _entries()
EACH = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)


# --- The page


def test_ids_count_from_one() -> None:
    """An id is given once, and none is left out, so that one means one thing."""
    assert [entry.id for entry in ENTRIES] == [f"A{number}" for number in range(1, len(ENTRIES) + 1)]
    assert len({entry.title for entry in ENTRIES}) == len(ENTRIES)


def test_every_sentence_that_says_not_shown_has_its_entry() -> None:
    """Rule: the sentences of the document that end in "not shown", one entry each, in their order."""
    assert [entry.sentence for entry in ENTRIES if "not shown" in entry.sentence] == NOT_SHOWN
    assert [entry.sentence for entry in ENTRIES[: len(NOT_SHOWN)]] == NOT_SHOWN


@EACH
def test_an_entry_has_all_its_parts(entry: Entry) -> None:
    """Sentence, assumption, what would show it wrong, place, test and switch; of client and switch there may be none."""
    assert entry.title
    assert entry.sentence
    assert tuple(entry.parts) == PARTS
    for part, text in entry.parts.items():
        assert text.strip()
        assert (text == NONE) <= (part in MAY_BE_NONE), part
    for part in ("Assumed", "Shown wrong by"):
        assert entry.parts[part].endswith((".", "?"))


@EACH
@pytest.mark.parametrize(
    ("part", "folder"),
    [("Sandbox", "sandbox/"), ("Client", "pipelines/"), ("Test", "tests/")],
)
def test_what_an_entry_names_is_there(entry: Entry, part: str, folder: str) -> None:
    """Each path exists, and has the constant, function, method, field or test that is named."""
    if entry.parts[part] == NONE:
        return
    references = entry.references(part)
    assert ", ".join(f"`{reference}`" for reference in references) == entry.parts[part]
    assert len(references) == len(set(references))
    for reference in references:
        path, _, name = reference.partition("::" if part == "Test" else ":")
        assert path.startswith(folder), reference
        assert (ROOT / path).is_file(), reference
        assert name in _names(path), reference
        assert part != "Test" or name.startswith("test_"), reference


@EACH
def test_a_switch_is_one_that_the_sandbox_has(entry: Entry) -> None:
    """Options as its command line takes them, or JSON for its control endpoint; each gives settings other than the default."""
    if entry.parts["Switch"] == NONE:
        return
    switches = entry.references("Switch")
    assert ", ".join(f"`{switch}`" for switch in switches) == entry.parts["Switch"]
    for switch in switches:
        assert _switched(switch) != Settings(), switch


def test_every_variation_is_the_other_reading_of_an_entry() -> None:
    """A liberty the sandbox can take is one that the document leaves, so the page has it. ``link=loop`` is a mistake, not a reading."""
    switches = " ".join(entry.parts["Switch"] for entry in ENTRIES)
    named = set(re.findall(r"--variation (\w+)=", switches))
    assert named == set(Settings().variations.__dataclass_fields__)


@EACH
def test_other_entries_that_are_mentioned_exist(entry: Entry) -> None:
    """An id in a text leads to another entry."""
    mentioned = set(re.findall(r"\bA\d+\b", entry.parts["Assumed"] + entry.parts["Shown wrong by"]))
    assert mentioned <= {each.id for each in ENTRIES} - {entry.id}


def test_a_test_of_this_file_names_its_entries() -> None:
    """The docstring of a test that carries an entry begins with the entry's id: ids do not slip apart when one is put between."""
    named: dict[str, list[str]] = {}
    for entry in ENTRIES:
        for reference in entry.references("Test"):
            path, _, name = reference.partition("::")
            if ROOT / path == Path(__file__):
                named.setdefault(name, []).append(entry.id)
    assert named
    for name, ids in named.items():
        assert globals()[name].__doc__.startswith(" and ".join(ids)), name


def _switched(switch: str) -> Settings:
    """The settings of a sandbox that was started, or told, so."""
    if switch.startswith("{"):
        return Settings().changed(json.loads(switch))
    return sandbox_settings(sandbox_options().parse_args(switch.split(" ")))


@cache
def _names(path: str) -> frozenset[str]:
    """What a module defines, and what its classes do, as ``Class.member``."""
    return frozenset(_defined(ast.parse((ROOT / path).read_text(encoding="utf-8")).body))


def _defined(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield within + name
            case ast.ClassDef(name=name, body=members):
                yield within + name
                yield from _defined(members, f"{within}{name}.")
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield within + name
            case ast.Assign(targets=targets):
                yield from (within + target.id for target in targets if isinstance(target, ast.Name))


# --- Assumptions that no other file carries


def test_quality_reviews_have_no_address(library: Library) -> None:
    """A2: the document names these records once and gives them no endpoint."""
    for path in ("/quality_reviews", "/quality_reviews/1", "/publications/1/quality_reviews"):
        assert library.v3().get(path).status_code == 404


def test_records_have_no_states(library: Library) -> None:
    """A4: "States and transitions of any resource: not shown": whatever a record went through, it can be changed and deleted."""
    client = library.v3()
    copy = client.post("/hard_copies", json={"publication_id": 1}).json()["id"]
    for status in ("missing", "on_loan", "missing", "available", "on_loan"):
        assert client.patch(f"/hard_copies/{copy}", json={"status": status}).json()["status"] == status
    assert client.delete(f"/hard_copies/{copy}").status_code == 200
    task = client.post("/tasks", json={"title": "Dust"}).json()["id"]
    client.patch(f"/tasks/{task}/complete")
    assert client.patch(f"/tasks/{task}", json={"title": "Dust again"}).json()["title"] == "Dust again"
    assert client.delete("/publications/1").status_code == 200


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_no_events_are_offered(library: Library, version: Any) -> None:
    """A11: "Events, webhooks or notifications sent by the service: not shown": the description has none."""
    description = yaml.safe_load(library.client(f"/api/{version.name}").get("/swagger.yaml").text)
    assert "webhooks" not in description
    operations = [each for path in description["paths"].values() for each in path.values() if isinstance(each, dict)]
    assert operations
    assert not any("callbacks" in operation for operation in operations)


def test_the_codes_of_errors() -> None:
    """A12: "Further error codes beyond `RecordNotFound` and `InsufficientScope`: not shown"."""
    refusals = [
        errors.bad_request(""), errors.unauthorized(""), errors.invalid_token("", ""), errors.access_denied(),
        errors.insufficient_scope(""), errors.record_not_found(), errors.route_not_found(""),
        errors.storage_not_found(""), errors.method_not_allowed("", ()),
        errors.unprocessable(""), errors.too_many_requests(1), errors.internal_server_error(),
    ]  # fmt: skip
    assert [(each.status, each.code) for each in refusals] == [
        (400, "BadRequest"), (401, "Unauthorized"), (401, "Unauthorized"), (403, "AccessDenied"), (403, "InsufficientScope"),
        (404, "RecordNotFound"), (404, "RouteNotFound"), (404, "StorageNotFound"), (405, "MethodNotAllowed"),
        (422, "UnprocessableEntity"), (429, "TooManyRequests"), (500, "InternalServerError"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("none", {"read"}),
        ("librarian", {"read", "write", "see users"}),
        ("admin", {"read", "write", "see users", "manage users"}),
    ],
)
def test_what_roles_allow(library: Library, role: str, allowed: set[str]) -> None:
    """A46: "Permissions equal the roles configured in the application."; what they forbid is 403."""
    person = {"email": "new@library.example", "name": "Nora New"}
    assert library.v3().post("/users", json={**person, "roles": [role]}).status_code == 200
    headers = {"Authorization": f"Bearer {library.token(person=person['email'])}"}
    client = library.client("/api/v3", headers=headers)
    answers = {
        "read": client.get("/publications"),
        "write": client.patch("/publications/1", json={}),
        "see users": client.get("/users"),
        "manage users": client.patch("/users/2", json={}),
    }
    assert {name for name, answer in answers.items() if answer.status_code == 200} == allowed
    assert {refusal(answer) for name, answer in answers.items() if name not in allowed} <= {(403, "AccessDenied")}


def test_twenty_registrations_are_accepted(empty: Library) -> None:
    """A13: "The number of daily registrations ...: not shown"."""
    assert [register(empty).status_code for _ in range(21)] == [201] * 20 + [429]


def test_a_search_may_lag_behind(empty: Library) -> None:
    """A18, setting `index_lag`: a search finds what is new later; a list without filters and the record show it at once."""
    client = empty.v3()
    empty.change(index_lag=60)
    number = create(client, identifiers=[{"type": "doi", "value": "10.1/1"}])["id"]
    assert client.get("/publications?doi=10.1/1").json() == {"records": []}
    assert client.get("/publications").headers["X-Total"] == "1"
    assert client.get(f"/publications/{number}").status_code == 200
    empty.clock.time += 60
    assert [each["id"] for each in client.get("/publications?doi=10.1/1").json()["records"]] == [number]
    empty.change(index_lag=0)
    other = create(client, identifiers=[{"type": "doi", "value": "10.1/2"}])["id"]
    assert [each["id"] for each in client.get("/publications?doi=10.1/2").json()["records"]] == [other]


def test_both_versions_show_categories_alike(empty: Library) -> None:
    """A23: "categories: array of objects (v3)"; what v2 has there is not said."""
    v2, v3 = empty.v2(), empty.v3()
    created = create(v2, categories=[{"name": "History"}])
    assert [sorted(each) for each in created["categories"]] == [["id", "name"]]
    assert v3.get(f"/publications/{created['id']}").json()["categories"] == created["categories"]


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_nulls_may_be_left_out(empty: Library, version: str) -> None:
    """A26, variation `nulls`: a field without a value is null, or not there."""
    client = getattr(empty, version)()
    number = create(client)["id"]
    full = client.get(f"/publications/{number}").json()
    assert full["abstract"] is None
    empty.vary(nulls="absent")
    filled = {name: value for name, value in full.items() if value is not None}
    assert client.get(f"/publications/{number}").json() == filled
    assert client.get("/publications").json()["records"] == [filled]


def test_import_state_is_in_v2_only(library: Library) -> None:
    """A28: `import_state` is a field of v2 that is announced as deprecated."""
    assert library.v2().get("/publications/1").json()["import_state"] == "imported"
    assert create(library.v2())["import_state"] is None
    assert "import_state" not in library.v3().get("/publications/1").json()


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_create_may_be_answered_with_201(empty: Library, version: str) -> None:
    """A30, variation `created_status`: "200: request succeeded" is the one success in the table."""
    client = getattr(empty, version)()
    person = {"email": "new@library.example", "name": "Nora New"}
    for status, address in (("ok", "a@library.example"), ("created", "b@library.example")):
        empty.vary(created_status=status)
        answers = [
            client.post("/publications", json={"title": "A"}),
            client.post("/users", json={**person, "email": address}),
        ]
        assert [answer.status_code for answer in answers] == [201 if status == "created" else 200] * 2
        assert all(isinstance(answer.json()["id"], int) for answer in answers)


@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize(
    ("variation", "status", "body"), [("object", 200, b"{}"), ("empty", 200, b""), ("no_content", 204, b"")]
)
def test_a_deletion_may_be_answered_in_three_ways(
    empty: Library, version: str, variation: str, status: int, body: bytes
) -> None:
    """A8 and A31, variation `deleted_answer`: "empty or object"."""
    client = getattr(empty, version)()
    empty.vary(deleted_answer=variation)
    number = create(client)["id"]
    answer = client.delete(f"/publications/{number}")
    assert (answer.status_code, answer.content) == (status, body)
    assert refusal(client.get(f"/publications/{number}")) == (404, "RecordNotFound")
