"""Numbers of records: what cannot be moved of them is counted, and where a reference leads is compared."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pipelines.drill import drill
from pipelines.migration.model.losses import in_short, losses_of
from pipelines.scopes import SCOPES
from pipelines.settings.config_file import load_settings
from pipelines.shapes.unread_lists import MEMBERS
from pipelines.store.catalogue import open_catalogue
from pipelines.store.stores import open_data
from tests.backup.other_resources.signing import sign_in
from tests.migration.chaos import KillingWay
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import back_up, make_pair, plan_rows, records_of, titles
from tests.migration.test_additional_fields import DOCUMENTED
from tests.sandbox.process import SandboxProcess

NAMES: dict[str, Any] = {"name": {"from": "name", "required": True}, "description": {"from": "description"}}
PUBLICATIONS: dict[str, dict[str, Any]] = {
    "publications": {"of": "publications", "key": "publication_id", "kept_in": "publication_ids", "added": False}
}
"""The publications of a collection at an address of their own, which takes no further ones."""
MEMBERS_APART = {"collections": {"fields": NAMES, "lists": PUBLICATIONS}}


@pytest.fixture
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LibraryPair]:
    """A library of some publications, and a target that has the same, or none."""
    records, target = getattr(request, "param", (4, "target"))
    tenants = [f"--tenant={name}=real:{records}" for name in ("library", "target")]
    with SandboxProcess(*tenants, "--tenant=empty=empty", "--requests-per-minute", "0") as sandbox:
        yield make_pair(tmp_path, sandbox, target)


def read_nested(pair: LibraryPair, *tenants: str, names: Sequence[str] = ("collections/publications",)) -> None:
    """Let these lists of each record be read, of the source by default."""
    for table in (f"[tenants.{tenant}]\n" for tenant in tenants or ("old",)):
        pair.config.write_text(pair.config.read_text().replace(table, f"{table}nested = {[*names]}\n"))


def test_lists_that_no_backup_reads_are_among_the_losses(pair: LibraryPair) -> None:
    """The collections of both libraries do not show which publications they have."""
    pair.sandbox.reshape({"collections": {"fields": NAMES}}, "library", "target")
    snapshot = back_up(pair, "run")
    assert snapshot.manifest.not_read == [MEMBERS]
    with open_catalogue(open_data(load_settings(pair.config))) as database:
        unread = database.execute("SELECT table_name, reason FROM tables_read WHERE NOT read").fetchall()
    assert unread == [
        (
            "collection_publications",
            "this backup did not read /collections/:id/publications, where the library may have it",
        )
    ]
    plan = pair.plan(snapshot, resources=("collections",))
    assert "the publications of each collection" in in_short(losses_of(plan))
    [remedy] = [loss.remedy for loss in losses_of(plan) if loss.kind == "lists"]
    assert remedy.startswith(
        'To read "collections/publications", write nested = ["collections/publications"] in the table of \'old\''
    )


@pytest.mark.long
@pytest.mark.parametrize("pair", [(4, "target"), (4, "empty")], ids=["target", "empty"], indirect=True)
def test_members_at_an_address_of_their_own_are_moved_where_the_target_takes_them(pair: LibraryPair) -> None:
    """As numbers in its records. `nested` of the source reads them; they lead to the records of the target."""
    pair.sandbox.reshape(MEMBERS_APART, "library")
    read_nested(pair)
    snapshot = back_up(pair, "run")
    assert (snapshot.manifest.complete, snapshot.manifest.not_read) == (True, [])
    plan = pair.plan(snapshot, resources=("collections",))
    assert plan.types["collections"].references == {"publication_ids": ("publications",)}
    applied = pair.apply(plan)
    proof = pair.verify(plan)
    assert (applied.failed, applied.lacking.references, proof.as_planned) == (0, 0, True)
    with open_catalogue(open_data(load_settings(pair.config))) as database:
        members = database.execute(
            "SELECT c.name, list(p.title ORDER BY p.title) FROM collection_publications AS m "
            "JOIN collections AS c ON m.collection_id = c.id JOIN publications AS p ON m.publication_id = p.id GROUP BY c.name"
        ).fetchall()
    books = records_of(pair, "publications", pair.target)
    moved = records_of(pair, "collections", pair.target).values()
    in_target = {
        record["name"]: sorted(books[number]["title"] for number in record["publication_ids"]) for record in moved
    }
    assert members
    assert dict(members).items() <= in_target.items()
    assert pair.plan(back_up(pair, "second"), resources=("collections",)).facts.empty
    assert pair.undo(plan, really=True).left == 0


@pytest.mark.long
def test_an_undo_removes_the_members_that_the_plan_added_and_no_others(pair: LibraryPair) -> None:
    """I8, I9: by the DELETE of the target's description, whatever processes are killed. What people added stays."""
    for number, collection in records_of(pair, "collections").items():
        pair.call("PATCH", f"collections/{number}", {"publication_ids": collection["publication_ids"][:1]})
    keep_members_apart(pair, removed=True)
    before = members_of(pair, pair.target)
    with KillingWay(pair.sandbox.url) as way:
        direct = pair.sandbox.base_url(pair.target)
        pair.config.write_text(pair.config.read_text().replace(direct, way.url + urlsplit(direct).path))
        sign_in(pair.config, "new", pair.sandbox, pair.target, SCOPES)
        plan = pair.plan(back_up(pair, "run"), resources=("collections",))
        row = next(
            row for row in plan_rows(plan, "collections", "patch") if len(row.references["publication_ids"].records) > 2
        )
        number, planned = row.existing_target_id, {target for _, _, target in row.references["publication_ids"].records}
        path = f"collections/{number}/publications"
        way.assert_kills(pair.config, plan.name, "POST", path, "after")
        by_people = min(planned - {member["id"] for member in pair.call("GET", path)["records"]})
        pair.call("POST", path, {"publication_id": by_people})
        assert pair.apply(plan).failed == 0
        added = sum(map(len, members_of(pair, pair.target).values())) - sum(map(len, before.values()))
        dry_run = pair.undo(plan)
        way.assert_kills(pair.config, plan.name, "DELETE", path, "after", command="undo")
        undone = pair.undo(plan, really=True)
    collection, book = records_of(pair, "collections")[number]["name"], titles(pair)[by_people]
    assert members_of(pair, pair.target) == before | {collection: sorted([*before[collection], book])}
    assert (dry_run.members_removed, dry_run.left, undone.left) == (added - 1, 0, 0)


@pytest.mark.long
@pytest.mark.parametrize("pair", [(4, "empty")], ids=["empty"], indirect=True)
def test_how_members_are_added_is_asked_where_nothing_describes_it(pair: LibraryPair) -> None:
    """Until that is answered, none is sent."""
    keep_members_apart(pair, description="missing")
    snapshot = back_up(pair, "run")
    assert pair.plan(snapshot, resources=("collections",)).types["collections"].left_out == {"publication_ids": "link"}
    mapping = pair.map(snapshot)
    [question] = mapping.questions()
    line = 'publication_ids = { leads_to = "publications", many = true, post = "?" }'
    assert mapping.text.splitlines()[question.line - 1] == line
    mapping.path.write_text(mapping.text.replace('post = "?"', 'post = "publications publication_id"'))
    plan = pair.plan(snapshot, resources=("collections",))
    assert pair.apply(plan).requests == plan.facts.requests
    assert members_of(pair, pair.target) == members_of(pair, "library")


def keep_members_apart(pair: LibraryPair, description: str = "follows", *, removed: bool = False) -> None:
    """Let both libraries have the publications of a collection at an address of their own, and let both be read."""
    for tenant, allowed in (("library", {}), (pair.target, {"added": True, "removed": removed})):
        lists = {"publications": {**PUBLICATIONS["publications"], **allowed}}
        collections = {"fields": NAMES, "lists": lists}
        pair.sandbox.reshape({"collections": collections}, tenant, description=description)
    if "nested" not in pair.config.read_text():
        read_nested(pair, "old", "new")


def members_of(pair: LibraryPair, tenant: str) -> dict[str, list[str]]:
    """Collection → titles of its publications, each as often as its list has it."""
    pair = pair.library(tenant)
    collections = records_of(pair, "collections")
    return {
        record["name"]: sorted(
            member["title"] for member in pair.call("GET", f"collections/{number}/publications")["records"]
        )
        for number, record in collections.items()
    }


LISTS: dict[str, Any] = {
    "publications": {"fields": DOCUMENTED, "lists": {"tasks": {"of": "tasks", "key": "task_id"}}},
    "users": {
        "fields": {name: {"from": name} for name in ("email", "name", "roles")},
        "lists": {"collections": {"of": "collections", "key": "collection_id", "removed": True}},
    },
    "collections": {
        "fields": NAMES,
        "lists": {"members": {"of": "publications", "key": "publication_id", "entries": "objects"}},
    },
    "hard_copies": {
        "fields": {
            name: {"from": name} for name in ("publication_id", "location_id", "barcode", "call_number", "status")
        },
        "lists": {"borrowers": {"of": "users", "key": "user_id", "entries": "links"}},
    },
    "tasks": {
        "fields": {name: {"from": name} for name in ("title", "description", "publication_id", "due_on")},
        "lists": {"assignees": {"of": "users", "key": "user_id"}, "remarks": {"of": "collections"}},
    },
}
LIST_OF = {
    f"{resource}/{{}}/{name}": (form.get("key", "id"), form["of"])
    for resource, shape in LISTS.items()
    for name, form in shape["lists"].items()
}
"""Path of a list → the key of an entry, and the resource of its records."""


@pytest.mark.parametrize("pair", [(1, "target")], ids=["a request for each list"], indirect=True)
def test_lists_of_any_name_are_moved_where_their_records_are_known(
    pair: LibraryPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of the list, or by its entries, each entry once, whatever responses are lost; those of an unknown kind are a question.

    With persons encrypted; where a list leads to what is written later, it is filled when that is there.
    """
    pair.sandbox.reshape(LISTS, "library", pair.target)
    read_nested(pair, "old", "new", names=[path.replace("/{}", "") for path in LIST_OF])
    monkeypatch.setenv("TEST_PERSONAL_KEY", b64encode(bytes(range(32))).decode())
    pair.config.write_text('personal_key_env = "TEST_PERSONAL_KEY"\n' + pair.config.read_text())
    source = pair.library()
    source.call("POST", "publications", {"title": "Another book"})
    for path, (key, resource) in LIST_OF.items():
        owner = max(records_of(source, path.partition("/")[0]))
        for number in sorted(records_of(source, resource))[:2]:
            source.call("POST", path.format(owner), {key: number})
    snapshot = back_up(pair, "run")
    assert (snapshot.manifest.complete, snapshot.manifest.not_read) == (True, [])
    encrypted = {name for name, table in snapshot.manifest.tables.items() if table.encrypted and "user" not in name}
    assert encrypted == {
        *("raw_hard_copy_borrowers", "hard_copy_borrowers", "raw_task_assignees", "task_assignees"),
    }
    resources = ("users", "collections", "locations", "hard_copies", "tasks")
    mapping = pair.map(snapshot)
    asked = [mapping.text.splitlines()[question.line - 1] for question in mapping.questions()]
    lines = [
        'borrower_ids = { leads_to = "?", many = true, post = "borrowers user_id" }',
        'remark_ids = { leads_to = "?", many = true, post = "remarks id" }',
    ]
    assert asked == lines
    assert (
        'publication_ids = { leads_to = "publications", many = true, post = "members publication_id" }' in mapping.text
    )
    text = mapping.text.replace(lines[0], lines[0].replace("?", "users"))
    mapping.path.write_text(text.replace(lines[1], lines[1].replace("?", "collections")))
    plan = pair.plan(snapshot, resources=resources)
    path = "/(collections/[0-9]+/members|tasks/[0-9]+/assignees)"
    pair.sandbox.fault("reset", pair.target, path=path, method="POST", when="after", times=2)
    applied = pair.apply(plan)
    proof = pair.verify(plan)
    assert (applied.failed, applied.complete, proof.as_planned) == (0, True, True), applied.findings
    assert_same_lists(source, pair, LIST_OF)
    source.call(
        "DELETE", f"users/{max(records_of(source, 'users'))}/collections/{min(records_of(source, 'collections'))}"
    )
    later = pair.plan(back_up(pair, "second"), resources=resources)
    assert pair.apply(later).lacking.writes == 1, "nothing is taken out of such a list"
    assert [finding.problem.partition(",")[0] for finding in pair.verify(later).findings] == [
        "its list has records that the source does not have"
    ]
    last = pair.plan(back_up(pair, "third"), resources=resources)
    assert last.facts.empty
    assert pair.status(last).lacking.writes == 1
    pair.undo(later, really=True)
    undone = pair.undo(plan, really=True)
    assert [finding for finding in undone.findings if "a person must remove it there" in finding.problem]
    removed = [path for method, path in pair.writes() if method == "DELETE" and "/users/" in path]
    assert [path for path in removed if re.fullmatch("/api/v3/users/[0-9]+/collections/[0-9]+", path)], removed


def assert_same_lists(source: LibraryPair, target: LibraryPair, lists: Mapping[str, tuple[str, str]]) -> None:
    """The target has the entries of the source, by the names of the records. `lists`: path → key of a link, and resource of its records."""
    for path, (key, resource) in lists.items():
        of_source, of_target = (sorted(_names_in(library, path, key, resource)) for library in (source, target))
        assert of_source, path
        assert Counter(of_source) <= Counter(of_target), path


def _names_in(library: LibraryPair, path: str, key: str, resource: str) -> Iterator[tuple[str, str]]:
    """Yield the name of a record, and that of an entry of its list."""
    names = {number: name_of(record) for number, record in records_of(library, resource).items()}
    for number, record in records_of(library, path.partition("/")[0]).items():
        for entry in library.call("GET", path.format(number))["records"]:
            link = entry.get(key.removesuffix("_id"), entry) if "_" in key else entry
            yield name_of(record), names[link.get(key, link["id"])]


def name_of(record: dict[str, Any]) -> str:
    return str(next(record[field] for field in ("barcode", "title", "name") if field in record))


@pytest.mark.long
@pytest.mark.parametrize("pair", [(4, "empty")], ids=["empty"], indirect=True)
def test_what_an_entry_says_beside_the_link_is_named_and_its_own_number_is_no_link(pair: LibraryPair) -> None:
    """Only ids are added to such a list; and a list whose name says nothing may have numbers of its own: `{id: 9002, user_id: 2}`."""
    lists = {
        "publications": {**PUBLICATIONS["publications"], "entries": "links", "added": True, "beside": "note"},
        "editors": {"of": "users", "key": "user_id", "entries": "links", "beside": "role"},
        "users": {"of": "users", "key": "user_id", "beside": "since"},
    }
    pair.sandbox.reshape({"collections": {"fields": NAMES, "lists": lists}}, "library", pair.target)
    read_nested(pair, "old", "new", names=[f"collections/{name}" for name in lists])
    source = pair.library()
    collection = min(records_of(source, "collections"))
    for name in ("editors", "users"):
        source.call("POST", f"collections/{collection}/{name}", {"user_id": min(records_of(source, "users"))})
    snapshot = back_up(pair, "run")
    plan = pair.plan(snapshot, resources=("users", "collections"))
    assert plan.types["collections"].posted == {
        "publication_ids": "publications publication_id",
        "user_ids": "users user_id",
    }
    reasons = {(row.source_id, name): code for row in plan_rows(plan, "collections") for name, code in row.why.items()}
    members = {
        number: source.call("GET", f"collections/{number}/publications")["records"]
        for number in records_of(source, "collections")
    }
    assert {(number, "publication_entries") for number, entries in members.items() if entries} | {
        (collection, name) for name in ("editor_ids", "user_entries")
    } == reasons.keys() - {(number, "description") for number in members}
    applied = pair.apply(plan)
    assert (applied.failed, pair.verify(plan).equal) == (0, False)
    assert not [path for _method, path in pair.writes() if path.endswith("/editors")]
    assert pair.plan(back_up(pair, "second"), resources=("users", "collections")).facts.empty
    loaded = load_settings(pair.config)
    result = drill(loaded, open_data(loaded), snapshot, now=datetime(2026, 11, 21, tzinfo=UTC))
    left = {*re.findall(r"collections\.[a-z]+_[a-z]+", " ".join(result.problems))}
    assert left == {"collections.publication_entries", "collections.editor_ids", "collections.user_entries"}, (
        "it asks nobody"
    )


def test_members_that_the_target_takes_at_no_field_are_lacking(pair: LibraryPair) -> None:
    """Its own list is at an address of its own, too: they are counted and named, by plan, apply and verify."""
    pair.sandbox.reshape(MEMBERS_APART, "library", "target")
    read_nested(pair)
    plan = pair.plan(back_up(pair, "run"), resources=("collections",))
    assert plan.types["collections"].left_out == {"publication_ids": "link"}
    applied = pair.apply(plan)
    proof = pair.verify(plan)
    assert (applied.complete, applied.lacking.references > 0, applied.failed) == (False, True, 0)
    assert (proof.equal, proof.as_planned, proof.lacking.references) == (False, True, applied.lacking.references)
    assert [loss.count for loss in losses_of(plan) if "collections.publication_ids" in str(loss)] == [
        applied.lacking.references
    ]


@pytest.mark.long
def test_a_reference_that_leads_elsewhere_is_found_by_verify(pair: LibraryPair) -> None:
    """All else of the record is equal, and the number is one that the target has."""
    plan = pair.plan(back_up(pair, "run"), resources=("hard_copies",))
    pair.apply(plan)
    (number, copy), (_, other_copy), *_ = records_of(pair, "hard_copies").items()
    assert copy["publication_id"] != other_copy["publication_id"]
    pair.call("PATCH", f"hard_copies/{number}", {"publication_id": other_copy["publication_id"]})
    proof = pair.verify(plan)
    [finding] = proof.findings
    summary = finding.resource, finding.code, finding.field
    assert (proof.equal, summary) == (False, ("hard_copies", "differing", "publication_id"))
