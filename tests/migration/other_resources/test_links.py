"""References between records that do not exist yet: within one resource, circles included, and to what is written later.

The source is compared with the target without our code: both are read from the service, and ids are followed to names.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import StopError
from pipelines.migration.flow import Migration
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.plan_folders import find_plan
from pipelines.service.client import LibraryClient
from pipelines.settings.config_file import load_settings
from tests.forks import kill_at, start
from tests.migration.library_pair import FastClock, LibraryPair
from tests.migration.other_resources.full_library import (
    ALL_RESOURCES,
    back_up,
    make_pair,
    plan_rows,
    record_named,
    records_of,
    small_sandbox,
)
from tests.migration.other_resources.test_merges import decide
from tests.migration.test_additional_fields import DOCUMENTED
from tests.sandbox.process import SandboxProcess

__all__ = ["small_sandbox"]

ID_OR_NULL = {"type": ["integer", "null"]}
IDS = {"type": "array", "items": {"type": "integer"}}
BY_KIND = {"type": "object", "properties": {"item_type": {"type": "string"}, "item_id": {"type": "integer"}}}
TWO_IDS = {
    "type": ["object", "null"],
    "properties": {"collection_id": {"type": "integer"}, "task_id": ID_OR_NULL, "note": {"type": "string"}},
}
NUMBER_AND_NAME = {"type": ["object", "null"], "properties": {"id": {"type": "number"}, "name": {"type": "string"}}}
AUTHOR = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("name", "type", "orcid", "remark")},
        "authority_id": {"type": "number"},
        "user": NUMBER_AND_NAME,
    },
}
SHAPES: dict[str, Any] = {
    "collections": {
        "fields": {
            "name": {"from": "name", "required": True},
            "description": {"from": "description"},
            "publication_ids": {"from": "publication_ids"},
            "parent_id": {"schema": ID_OR_NULL, "seed": [None]},
            "child_ids": {"schema": IDS, "seed": [[]]},
            "open_task_id": {"schema": ID_OR_NULL, "seed": [None]},
            "subject_type": {"schema": {"type": ["string", "null"]}, "seed": [None]},
            "subject_id": {"schema": ID_OR_NULL, "seed": [None]},
            "about": {"schema": {"type": "array", "items": BY_KIND}, "seed": [[]]},
            "origin": {"schema": TWO_IDS, "seed": [None]},
            "beside": {"schema": {"type": "array", "items": TWO_IDS}, "seed": [[]]},
        }
    },
    "tasks": {
        "fields": {
            "title": {"from": "title", "required": True},
            "publication_id": {"from": "publication_id"},
            "assignee_id": {"from": "assignee_id"},
            "due_on": {"from": "due_on"},
        }
    },
    "publications": {
        "fields": {
            **DOCUMENTED,
            "authors": {"schema": {"type": "array", "items": AUTHOR}, "seed": [[{"name": "Bo", "type": "person"}]]},
            "collection_ids": {"schema": IDS, "seed": [[]]},
            "reviewing_user_id": {"schema": {"type": ["string", "null"]}, "seed": [None]},
            "translation_of": {"schema": NUMBER_AND_NAME, "seed": [None]},
        }
    },
}
"""Collections that refer to each other, and to tasks, which are written after them; and publications that refer to them, and to users."""

BEFORE, AFTER, ITSELF, ONE, OTHER = "Before", "After", "Itself", "One", "Other"


@pytest.fixture
def pair(sandbox: SandboxProcess, tmp_path: Path, request: pytest.FixtureRequest) -> LibraryPair:
    """A library with collections that refer to each other. Changes are PATCH, or a PUT that replaces the record; or ids are texts."""
    param = getattr(request, "param", "PATCH")
    verb = "PUT" if param == "PUT" else "PATCH"
    collections = {**SHAPES["collections"], "verb": verb, "replaces": verb == "PUT"}
    resources = {**SHAPES, "collections": collections}
    for tenant, ids in (("library", "A."), ("target", "b#")):
        if param == "texts":
            resources = json.loads(json.dumps(resources).replace('"integer"', '"string"'))
            for resource in ("collections", "tasks"):
                resources[resource]["ids"] = ids
        sandbox.reshape(resources, tenant)
    pair = make_pair(tmp_path, sandbox, "target")
    make_hierarchy(pair.library(), verb)
    return pair


def make_hierarchy(library: LibraryPair, verb: str) -> None:
    """A parent before its child, one after it, a collection in itself, a circle of two, and a list of children."""
    records = [{"name": name, "description": f"About {name}"} for name in (BEFORE, AFTER, ITSELF, ONE, OTHER)]
    made = [library.call("POST", "collections", record) for record in records]
    before, after, itself, first, second = (record["id"] for record in made)
    [task, *_] = records_of(library, "tasks")
    about = [("Task", task), ("Collection", after)]
    wholes = {collection["id"]: record for collection, record in zip(made, records, strict=True)}
    for number, change in {
        after: {
            "parent_id": before,
            "subject_type": "Collection",
            "subject_id": before,
            "origin": {"collection_id": before, "task_id": task, "note": "by hand"},
        },
        before: {
            "child_ids": [after, second],
            "open_task_id": task,
            "about": [{"item_type": kind, "item_id": number} for kind, number in about],
            "beside": [
                {"collection_id": first, "task_id": task, "note": "left"},
                {"collection_id": second, "note": "right"},
            ],
        },
        itself: {"parent_id": itself, "subject_type": "Task", "subject_id": task},
        first: {"parent_id": second},
        second: {"parent_id": first},
    }.items():
        library.call(verb, f"collections/{number}", {**wholes[number], **change})
    publications, user = records_of(library, "publications"), max(records_of(library, "users"))
    author = {"name": "Ada", "type": "person", "orcid": "0000-0002-1825-0097", "user": {"id": user}}
    original = publications[min(publications)]
    links = {
        "collection_ids": [second, first],
        "reviewing_user_id": str(user),
        "translation_of": {"id": original["id"], "name": original["title"]},
        "authors": [
            {"name": "Bo", "type": "person"},
            author | {"authority_id": max(records_of(library, "authorities"))},
        ],
    }
    library.call("PATCH", f"publications/{max(publications)}", links)


def meaning(pair: LibraryPair, tenant: str | None = None) -> dict[str, dict[str, Any]]:
    """Name of a collection → what it says, with the names of the records that it refers to."""
    collections = records_of(pair, "collections", tenant)
    names = {number: record["name"] for number, record in collections.items()}
    publications = records_of(pair, "publications", tenant)
    users = {str(number): user["email"] for number, user in records_of(pair, "users", tenant).items()}
    authorities = {number: record["name"] for number, record in records_of(pair, "authorities", tenant).items()}
    tasks = {number: record["title"] for number, record in records_of(pair, "tasks", tenant).items()}
    by_kind = {"Collection": names, "Task": tasks}
    return {
        record["name"]: {
            "description": record["description"],
            "publications": sorted(publications[number]["title"] for number in record["publication_ids"]),
            "parent": record["parent_id"] and names[record["parent_id"]],
            "children": sorted(names[number] for number in record["child_ids"] or ()),
            "task": record["open_task_id"] and tasks[record["open_task_id"]],
            "subject": record["subject_type"] and by_kind[record["subject_type"]][record["subject_id"]],
            "about": [by_kind[entry["item_type"]][entry["item_id"]] for entry in record["about"] or ()],
            "beside": [
                (names[entry["collection_id"]], entry.get("task_id") and tasks[entry["task_id"]], entry["note"])
                for entry in (record["origin"], *(record["beside"] or ()))
                if entry
            ],
            "named by": sorted(
                (
                    publication["title"],
                    users[publication["reviewing_user_id"]],
                    publications[publication["translation_of"]["id"]]["title"],
                    [author["name"] for author in publication["authors"]],
                    [
                        (author["orcid"], authorities[author["authority_id"]], users[str(author["user"]["id"])])
                        for author in publication["authors"]
                        if author["name"] == "Ada"
                    ],
                )
                for publication in publications.values()
                if number in (publication["collection_ids"] or ())
            ),
        }
        for number, record in collections.items()
    }


def moved(pair: LibraryPair, tenant: str | None = None) -> dict[str, dict[str, Any]]:
    collections = meaning(pair, tenant)
    return {name: collections[name] for name in (BEFORE, AFTER, ITSELF, ONE, OTHER)}


def links_of(plan: Plan) -> dict[str, set[str]]:
    """Title of each collection that gets references by a second request → those fields."""
    rows = plan_rows(plan, "collections", Action.CREATE, Action.PATCH)
    links = {row.title or "": {name for name, reference in row.references.items() if reference.later} for row in rows}
    return {title: names for title, names in links.items() if names}


@pytest.mark.long
@pytest.mark.parametrize(
    ("pair", "reads"),
    [("PUT", range(3, 6)), ("texts", range(1))],
    ids=["PUT", "texts"],
    indirect=["pair"],
)
def test_references_within_a_resource_and_to_later_ones_are_moved_and_taken_back(
    pair: LibraryPair, reads: range
) -> None:
    """A child is created after its parent; only what no order allows costs a second request, and the plan says how many.

    A PUT replaces the record, which is read before: each worker tries its address once, then its list is read.
    """
    before = meaning(pair)
    plan = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    assert {"parent_id", "child_ids", "open_task_id", "subject_id", "about", "origin/task_id", "beside"} <= plan.types[
        "collections"
    ].references.keys()
    assert links_of(plan) == {
        BEFORE: {"child_ids", "open_task_id", "about", "beside"},
        AFTER: {"origin/collection_id", "origin/task_id", "origin/note"},
        ITSELF: {"parent_id", "subject_id"},
        ONE: {"parent_id"},
    }
    assert plan.types["publications"].references == {
        "collection_ids": ("collections",),
        "reviewing_user_id": ("users",),
        "translation_of": ("publications",),
        "authors": ("authorities", "users"),
    }
    applied = pair.apply(plan)
    assert [failure.problem for failure in applied.failures] == []
    assert applied.linked == 5
    assert applied.requests - plan.facts.requests in reads
    assert moved(pair) == moved(pair, "library")
    assert pair.verify(plan).as_planned
    status = pair.status(plan)
    assert (status.written, status.planned["links"], status.done["links"]) == (True, 5, 5)
    assert pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES).facts.empty
    assert pair.apply(plan).requests == 0
    supposed = pair.undo(plan, really=False)
    undone = pair.undo(plan, really=True)
    assert (supposed.deleted, supposed.left) == (undone.deleted, undone.left)
    assert {finding.resource for finding in undone.findings} <= {"authorities", "tasks"}
    assert meaning(pair) == before


def names_of_authors(pair: LibraryPair) -> tuple[int, list[str]]:
    """Id and authors of the publication in the target whose author leads to records."""
    title = max(records_of(pair, "publications", "library").items())[1]["title"]
    record = record_named(records_of(pair, "publications"), title, "title")
    return record["id"], [author["name"] for author in record["authors"]]


@pytest.mark.long
def test_authors_are_there_before_the_records_to_which_they_lead(pair: LibraryPair) -> None:
    """Where such a record is refused, the next plan sets the link, unless people changed the authors since.

    A reference that the source lost stays in the target.
    """
    plan = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    pair.sandbox.fault("status", "target", method="POST", path="/authorities$", status=422, times=100)
    pair.apply(plan)
    pair.sandbox.reset("faults")
    publication, names = names_of_authors(pair)
    assert names == ["Bo", "Ada"]
    authors = records_of(pair, "publications")[publication]["authors"]
    pair.call("PATCH", f"publications/{publication}", {"authors": [*authors, {"name": "Cy", "type": "person"}]})
    with pytest.raises(StopError, match=f"was to be linked as {publication}, and people changed that"):
        pair.apply(plan)
    pair.call("PATCH", f"publications/{publication}", {"authors": authors})
    [waiting] = [finding for finding in pair.verify(plan).findings if finding.field == "authors"]
    assert (waiting.wanted, waiting.problem) == ("", "it is not linked yet to all records to which it refers")
    pair.apply(pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES))
    assert moved(pair) == moved(pair, "library")
    assert pair.plan(back_up(pair, "third"), resources=ALL_RESOURCES).facts.empty
    publications_plan = pair.plan(back_up(pair, "fourth"), resources=("publications",))
    assert publications_plan.facts.empty, "the target keeps what this plan knows nothing of"
    assert moved(pair) == moved(pair, "library")


@pytest.mark.long
def test_what_people_say_of_an_author_stays_where_the_source_says_nothing_of_it(pair: LibraryPair) -> None:
    """The list of authors is sent whole, also where a link still waits in a later run; undo gives it back as it was."""

    def authors() -> list[dict[str, Any]]:
        of_target: list[dict[str, Any]] = records_of(pair, "publications")[publication]["authors"]
        return of_target

    first = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    pair.sandbox.fault("status", "target", method="POST", path="/authorities$", status=422, times=100)
    pair.apply(first)
    pair.sandbox.reset("faults")
    publication, _names = names_of_authors(pair)
    [bo, ada] = authors()
    pair.call("PATCH", f"publications/{publication}", {"authors": [bo, ada | {"remark": "Seen in May"}]})
    pair.apply(first)
    assert moved(pair) == moved(pair, "library")
    before = authors()
    assert before[-1]["remark"] == "Seen in May"
    source = pair.library()
    number, record = max(records_of(source, "publications").items())
    newcomer = source.call("POST", "authorities", {"name": "Newcomer, Nina", "kind": "person"})["id"]
    nina = {"name": "Nina", "type": "person", "authority_id": newcomer}
    source.call("PATCH", f"publications/{number}", {"authors": [nina, *record["authors"]]})
    plan = pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES)
    pair.sandbox.fault("status", "target", method="PATCH", path="/publications/", status=422, times=100)
    assert (pair.apply(plan).failed, authors()) == (1, before)
    pair.sandbox.reset("faults")
    assert pair.apply(plan).failed == 0, "a refused change is no edit of people"
    assert (names_of_authors(pair)[1], authors()[1:]) == (["Nina", "Bo", "Ada"], before)
    assert pair.verify(plan).as_planned
    pair.undo(plan, really=True)
    assert authors() == before


@pytest.mark.long
def test_undo_leaves_the_authors_of_a_publication_that_people_changed(pair: LibraryPair) -> None:
    plan = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    pair.apply(plan)
    publication, authors = names_of_authors(pair)
    pair.call("PATCH", f"publications/{publication}", {"abstract": "Changed by people"})
    pair.undo(plan, really=True)
    assert names_of_authors(pair) == (publication, authors)


@pytest.mark.long
def test_a_link_leads_to_the_record_that_is_created_beside_one_of_the_same_name(pair: LibraryPair) -> None:
    """Where the publications of a collection tell it from others, they do so as well before the publications are planned."""
    resources = {
        "publications": SHAPES["publications"],
        "collections": {"fields": {"label": {"from": "name"}, "kept_publications": {"from": "publication_ids"}}},
    }
    pair.sandbox.reshape(resources, "library", "target")
    source = pair.library()
    publication, record = [*records_of(source, "publications").items()][7]
    collection = source.call("POST", "collections", {"label": "Same", "kept_publications": [publication]})["id"]
    source.call("PATCH", f"publications/{publication}", {"collection_ids": [collection]})
    pair.call("POST", "collections", {"label": "Same", "kept_publications": []})
    pair.apply(pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES))
    linked = record_named(records_of(pair, "publications"), record["title"], "title")
    made = max(
        records_of(pair, "collections").values(),
        key=lambda collection: collection["label"] == "Same" and len(collection["kept_publications"]),
    )
    assert linked["collection_ids"] == [made["id"]]
    assert (made["label"], made["kept_publications"]) == ("Same", [linked["id"]])
    assert pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES).facts.empty


@pytest.mark.long
@pytest.mark.parametrize("names", [(ONE,), (ONE, OTHER)], ids=["one", "and one below it"])
def test_nothing_refers_to_a_record_of_the_same_name_with_another_parent_before_it_is_decided(
    pair: LibraryPair, names: tuple[str, ...]
) -> None:
    """As a shelf of the same name stands in another room: only a person knows whether it is that shelf."""
    elsewhere = pair.call("POST", "collections", {"name": "Elsewhere", "description": "Another room"})["id"]
    namesakes = {
        name: pair.call("POST", "collections", {"name": name, "description": f"About {name}", "parent_id": elsewhere})[
            "id"
        ]
        for name in names
    }
    plan = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    conflicts = {row.title: row for row in plan.rows(Action.CONFLICT)}
    assert {name: row.candidates for name, row in conflicts.items()} == {name: [namesakes[name]] for name in names}
    assert {row.reason for row in conflicts.values()} == {"fields_differ"}
    pair.apply(plan)
    collections, publications = records_of(pair, "collections"), records_of(pair, "publications")
    referred = {number for record in publications.values() for number in record["collection_ids"] or ()}
    referred |= {record["parent_id"] for number, record in collections.items() if number not in namesakes.values()}
    assert referred.isdisjoint(namesakes.values())
    for row in conflicts.values():
        decide(plan, "collections", row.source_id, "create")
    pair.apply(pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES))
    for number in namesakes.values():
        assert records_of(pair, "collections")[number]["parent_id"] == elsewhere
        pair.call("DELETE", f"collections/{number}")
    assert moved(pair) == moved(pair, "library")


@pytest.mark.long
def test_a_reference_that_people_set_meanwhile_stays(pair: LibraryPair) -> None:
    """Undo keeps the record that people changed, with what they set; a new plan asks them."""
    plan = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    pair.apply(plan)
    collections = records_of(pair, "collections")
    first, itself = (record_named(collections, name)["id"] for name in (ONE, ITSELF))
    pair.call("PATCH", f"collections/{first}", {"parent_id": itself})
    [row] = pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES).rows(Action.CONFLICT)
    assert (row.title, row.reason, [*row.differing]) == (ONE, "edited_in_target", ["parent_id"])
    pair.undo(plan, really=True)
    assert records_of(pair, "collections")[first]["parent_id"] == itself


@pytest.mark.long
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_between_the_creation_and_the_link_it_goes_on(pair: LibraryPair, moment: str) -> None:
    """Real processes, really killed: neither the record nor the link is lost or doubled, and undo takes everything back."""
    before = meaning(pair)
    plan = pair.plan(back_up(pair, "run"), resources=ALL_RESOURCES)
    assert die(pair, plan, "apply", moment) == -signal.SIGKILL
    assert len(records_of(pair, "collections")) == len(before) + len(moved(pair)), "all are created"
    links_done = pair.status(plan).done["links"]
    assert links_done < len(links_of(plan))
    applied = pair.apply(plan)
    assert ([failure.problem for failure in applied.failures], applied.created) == ([], 0)
    assert moved(pair) == moved(pair, "library")
    assert len(records_of(pair, "collections")) == len(before) + len(moved(pair))
    assert pair.verify(plan).as_planned
    assert pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES).facts.empty
    assert die(pair, plan, "undo", moment) == -signal.SIGKILL
    undone = pair.undo(plan, really=True)
    assert {finding.resource for finding in undone.findings} <= {"authorities", "tasks"}
    assert meaning(pair) == before


def die(pair: LibraryPair, plan: Plan, command: str, moment: str) -> int | None:
    """Apply or undo a plan in a process that is killed; returns its exit status."""
    process = start(killed, pair.config, plan.name, command, moment)
    process.join(120)
    return process.exitcode


def killed(config: Path, plan: str, command: str, moment: str) -> None:
    """Kills its process just before, or just after, it first sets a parent; of an undo, before it first deletes a collection."""

    def is_it(_client: LibraryClient, method: str, path: str, body: Any = None) -> bool:
        matches = method == "DELETE" if command == "undo" else method == "PATCH" and "parent_id" in body
        return matches and path.startswith("collections/")

    kill_at(LibraryClient, "write", moment, is_it)
    with Migration(load_settings(config), clock=FastClock()) as migration:
        loaded_plan = find_plan(migration.data, plan)
        migration.undo(loaded_plan, really=True) if command == "undo" else migration.apply(loaded_plan)
