"""A library with fields that nobody documents moves as its mapping file says: asked, answered, planned, written, equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.migration.mapping.mapping_file import MappingFile
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import Plan
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import ALL_RESOURCES, back_up, make_pair, records_of
from tests.migration.test_additional_fields import DOCUMENTED
from tests.sandbox.process import SandboxProcess

NAME = {"from": "name", "required": True}
SHAPES: dict[str, Any] = {
    "publications": {
        "fields": {**DOCUMENTED, "rack": {"schema": {"type": ["integer", "null"]}, "seed": [2, 1]}},
    },
    "authorities": {"fields": {"name": NAME, "kind": {"from": "kind"}}},
    "hard_copies": {
        "fields": {
            "publication_id": {"from": "publication_id", "required": True},
            "barcode": {"from": "barcode"},
            "place": {"from": "location_id"},
            "shelf": {"schema": {"type": "integer"}, "seed": [2, 1]},
        }
    },
    "collections": {
        "fields": {
            "name": NAME,
            "kept": {
                "schema": {"type": "object", "properties": {"ref": {"type": "integer"}, "by": {"type": "string"}}},
                "seed": [{"ref": 2, "by": "hand"}],
            },
        }
    },
}
KINDS = {"person": "Human", "corporate": "Body", "subject": "Topic"}


@pytest.fixture(scope="module")
def few_sandbox() -> Iterator[SandboxProcess]:
    """A library of a few records, and three targets."""
    targets = ("--tenant=first=real:1", "--tenant=second=real:1", "--tenant=third=real:1")
    with SandboxProcess("--tenant=library=real:10", *targets, "--requests-per-minute", "0") as process:
        yield process


def shape(sandbox: SandboxProcess, target: str) -> None:
    """Both libraries get the shapes; the target has other words for kinds, and demands a branch of each copy."""
    sandbox.reshape(SHAPES, "library")
    authorities = {"fields": {"name": NAME, "kind": {"from": "kind", "values": KINDS}}}
    branch = {"schema": {"type": "string", "enum": ["main", "east"]}, "seed": ["main"], "required": True}
    copies = {"fields": {**SHAPES["hard_copies"]["fields"], "branch": branch}}
    sandbox.reshape({**SHAPES, "authorities": authorities, "hard_copies": copies}, target)


def asked(mapping: MappingFile) -> set[str]:
    lines = mapping.text.splitlines()
    return {lines[question.line - 1] for question in mapping.questions()}


def lost(plan: Plan) -> dict[str, int]:
    return {loss.words: loss.count for loss in losses_of(plan) if loss.kind == "unanswered"}


def test_questions_are_answered_and_followed(few_sandbox: SandboxProcess, tmp_path: Path) -> None:
    """`place`, `shelf` and `kept.ref` are numbers under names that say nothing: locations, a plain number, and publications."""
    pair = make_pair(tmp_path, few_sandbox, "third")
    shape(few_sandbox, pair.target)
    snapshot = back_up(pair, "shaped")
    counts = snapshot.counts

    mapping = pair.map(snapshot)
    assert asked(mapping) == {
        'place = { leads_to = "?" }',
        'rack = { leads_to = "?" }',
        'shelf = { leads_to = "?" }',
        'branch = { fill = "?" }',
        'kind = { values = { person = "?", corporate = "?", subject = "?" } }',
        '"kept/ref" = { leads_to = "?" }',
    }, mapping.text

    plan = pair.plan(snapshot, resources=ALL_RESOURCES)
    assert {*plan.facts.resources}.isdisjoint({"authorities", "hard_copies", "collections"})
    assert lost(plan) == {
        f"{counts[name]} {name.replace('_', ' ')}": counts[name]
        for name in ("authorities", "hard_copies", "collections")
    } | {"fields of publications": 0}
    [loss] = [str(loss) for loss in losses_of(plan) if loss.words == "fields of publications"]
    [question] = [question for question in mapping.questions() if question.field == "rack"]
    assert f": not planned, because in mappings/{mapping.path.name} rack (line {question.line}) has no answer." in loss
    assert pair.apply(plan).lacking.unanswered == sum(lost(plan).values())
    verification = pair.verify(plan)
    assert (verification.equal, verification.as_planned) == (False, True)

    text = mapping.text.replace('place = { leads_to = "?"', 'place = { leads_to = "locations"')
    for name in ("shelf", "rack"):
        text = text.replace(f'{name} = {{ leads_to = "?"', f'{name} = {{ leads_to = "nothing"')
    text = text.replace('fill = "?"', 'fill = "east"')
    text = text.replace('"kept/ref" = { leads_to = "?"', '"kept/ref" = { leads_to = "publications"')
    for source_word, target_word in KINDS.items():
        text = text.replace(f'{source_word} = "?"', f'{source_word} = "{target_word}"')
    mapping.path.write_text(f"{text}\n# signed: the librarian\n")
    assert pair.map(snapshot).text == f"{text}\n# signed: the librarian\n"

    plan = pair.plan(snapshot, resources=ALL_RESOURCES, overwrite=True)  # the target has collections of the same names
    assert lost(plan) == {}
    applied = pair.apply(plan)
    assert (applied.failures, applied.findings) == ([], [])
    assert pair.verify(plan).as_planned
    assert pair.plan(back_up(pair, "later"), resources=ALL_RESOURCES).facts.empty

    mapping.path.write_text(
        text.replace('"kept/ref" = { leads_to = "publications"', '"kept/ref" = { leads_to = "locations"')
    )
    alone = pair.plan(snapshot, resources=["collections"])  # read because the file leads there
    assert [str(loss) for loss in losses_of(alone) if "kept" in str(loss)] == []

    source_records, target_records = (
        {resource: records_of(pair, resource, library) for resource in ALL_RESOURCES} for library in ("library", None)
    )
    titles, places = (
        [
            {number: record[name] for number, record in side[resource].items()}
            for side in (source_records, target_records)
        ]
        for resource, name in (("publications", "title"), ("locations", "name"))
    )
    kept = [
        {
            record["name"]: (title[record["kept"]["ref"]], record["kept"]["by"])
            for record in side["collections"].values()
        }
        for title, side in zip(titles, (source_records, target_records), strict=True)
    ]
    assert kept[0] == kept[1]
    copies = [
        {copy["barcode"]: (place[copy["place"]], copy["shelf"]) for copy in side["hard_copies"].values()}
        for place, side in zip(places, (source_records, target_records), strict=True)
    ]
    assert copies[0].items() <= copies[1].items()
    assert {copy["branch"] for copy in target_records["hard_copies"].values()} == {"main", "east"}
    kinds = {record["name"]: record["kind"] for record in target_records["authorities"].values()}
    assert {
        record["name"]: KINDS[record["kind"]] for record in source_records["authorities"].values()
    }.items() <= kinds.items()


def with_completed_task(sandbox: SandboxProcess, folder: Path, target: str) -> tuple[LibraryPair, Snapshot]:
    """A pair whose source has a completed task, and its snapshot."""
    sandbox.reset("settings")
    pair = make_pair(folder, sandbox, target)
    source = pair.library()
    number = source.call("POST", "tasks", {"title": f"Bind the atlas of {target}"})["id"]
    source.call("PATCH", f"tasks/{number}/complete")
    return pair, back_up(pair, "run")


def test_a_completed_task_is_completed_by_its_own_request(few_sandbox: SandboxProcess, tmp_path: Path) -> None:
    """As the description has it: after it is created, journalled, and counted in the forecast."""
    pair, snapshot = with_completed_task(few_sandbox, tmp_path, "first")
    before = records_of(pair, "tasks")
    mapping = pair.map(snapshot, ["tasks"])
    assert 'completed_at = "PATCH complete"' in mapping.text
    plan = pair.plan(snapshot, resources=["tasks"])
    source_tasks = records_of(pair, "tasks", "library").values()
    titles = {task["title"] for task in before.values()}
    completed = {task["title"] for task in source_tasks if task["completed_at"] is not None} - titles
    assert plan.facts.work["actions"] == len(completed) >= 1
    requests = pair.requests()
    applied = pair.apply(plan)
    assert (applied.failures, pair.requests() - requests) == ([], plan.facts.requests)
    made = [task for number, task in records_of(pair, "tasks").items() if number not in before]
    assert {task["title"] for task in made if task["completed_at"] is not None} == completed
    assert pair.verify(plan).as_planned
    assert pair.status(plan).requests_left == 0
    second_plan = pair.plan(back_up(pair, "again"), resources=["tasks"])
    assert second_plan.facts.empty
    assert "tasks.completed_at" not in second_plan.facts.not_moved.by_field
    undone = pair.undo(plan, really=True)
    assert undone.left == len(made), "the service deletes no tasks"


@pytest.mark.long
def test_a_refused_request_of_a_field_is_said_and_tried_again(few_sandbox: SandboxProcess, tmp_path: Path) -> None:
    pair, snapshot = with_completed_task(few_sandbox, tmp_path, "second")
    mapping = pair.map(snapshot, ["tasks"])
    mapping.path.write_text(mapping.text.replace('"PATCH complete"', '"PATCH finish"'))
    plan = pair.plan(snapshot, resources=["tasks"])
    for _run in range(2):
        applied = pair.apply(plan)
        assert applied.failed == plan.facts.work["actions"]
        assert "completed_at was not set" in applied.failures[0].problem
    verification = pair.verify(plan)
    differing = [finding.field for finding in verification.findings if finding.code == "differing"]
    assert differing == ["completed_at"] * plan.facts.work["actions"]
    assert (verification.equal, verification.as_planned) == (False, False)
    titles = [task["title"] for task in records_of(pair, "tasks").values()]
    assert titles.count("Bind the atlas of second") == 1
