"""A library with fields that nobody documents moves as its mapping file says: asked, answered, planned, written, equal."""

from __future__ import annotations

from typing import Any

from pipelines.migration.flow import Migration
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import Plan
from pipelines.migration.plan.mapping import MappingFile
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import ALL_RESOURCES, back_up, records_of
from tests.sandbox.process import SandboxProcess

NAME = {"from": "name", "required": True}
SHAPES: dict[str, Any] = {
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


def shape(sandbox: SandboxProcess, target: str) -> None:
    """Both libraries get the shapes; the target has other words for kinds, and demands a branch of each copy."""
    sandbox.control("PUT", "settings", {"tenant": "library", "shapes": {"description": "follows", "resources": SHAPES}})
    authorities = {"fields": {"name": NAME, "kind": {"from": "kind", "values": KINDS}}}
    branch = {"schema": {"type": "string", "enum": ["main", "east"]}, "seed": ["main"], "required": True}
    copies = {"fields": {**SHAPES["hard_copies"]["fields"], "branch": branch}}
    resources = {**SHAPES, "authorities": authorities, "hard_copies": copies}
    sandbox.control("PUT", "settings", {"tenant": target, "shapes": {"description": "follows", "resources": resources}})


def asked(mapping: MappingFile) -> set[str]:
    lines = mapping.text.splitlines()
    return {lines[question.line - 1] for question in mapping.questions()}


def lost(plan: Plan) -> dict[str, int]:
    return {loss.words: loss.count for loss in losses_of(plan) if loss.kind == "unanswered"}


def test_questions_are_answered_and_followed(pair: LibraryPair, sandbox: SandboxProcess) -> None:
    """`place`, `shelf` and `kept.ref` are numbers under names that say nothing: locations, a plain number, and publications."""
    shape(sandbox, pair.target)
    snapshot = back_up(pair, "shaped")
    counts = snapshot.counts

    def mapped(migration: Migration) -> MappingFile:
        return migration.map(snapshot, "new")

    with pair.migration() as migration:
        mapping = mapped(migration)
    assert asked(mapping) == {
        'place = { leads_to = "?" }',
        'shelf = { leads_to = "?" }',
        'branch = { fill = "?" }',
        'kind = { values = { person = "?", corporate = "?", subject = "?" } }',
        'kept = { leads_to = "?", inside = ["ref"], members = ["by"] }',
    }, mapping.text

    plan = pair.plan(snapshot, resources=ALL_RESOURCES)
    assert {*plan.facts.resources}.isdisjoint({"authorities", "hard_copies", "collections"})
    assert lost(plan) == {
        f"{counts[name]} {name.replace('_', ' ')}": counts[name]
        for name in ("authorities", "hard_copies", "collections")
    }
    assert pair.apply(plan).applied.lacking.unanswered == sum(lost(plan).values())
    with pair.migration() as migration:
        verification = migration.verify(plan)
    assert (verification.equal, verification.as_planned) == (False, True)

    text = mapping.text.replace('place = { leads_to = "?"', 'place = { leads_to = "locations"')
    text = text.replace('shelf = { leads_to = "?"', 'shelf = { leads_to = "nothing"').replace(
        'fill = "?"', 'fill = "east"'
    )
    text = text.replace('kept = { leads_to = "?"', 'kept = { leads_to = "publications"')
    for ours, theirs in KINDS.items():
        text = text.replace(f'{ours} = "?"', f'{ours} = "{theirs}"')
    mapping.path.write_text(f"{text}\n# signed: the librarian\n")
    with pair.migration() as migration:
        assert mapped(migration).text == f"{text}\n# signed: the librarian\n"

    plan = pair.plan(snapshot, resources=ALL_RESOURCES, overwrite=True)  # the target has collections of the same names
    assert lost(plan) == {}
    applied = pair.apply(plan).applied
    assert (applied.failures, [finding.field for finding in applied.findings]) == ([], ["organization"])
    with pair.migration() as migration:
        assert migration.verify(plan).as_planned
    assert pair.plan(back_up(pair, "later"), resources=ALL_RESOURCES).facts.empty

    ours, theirs = (
        {resource: records_of(pair, resource, library) for resource in ALL_RESOURCES} for library in ("library", None)
    )
    names = [{number: place["name"] for number, place in side["locations"].items()} for side in (ours, theirs)]
    titles = [{number: record["title"] for number, record in side["publications"].items()} for side in (ours, theirs)]
    wanted = {
        copy["barcode"]: (names[0][copy["place"]], copy["shelf"], "east") for copy in ours["hard_copies"].values()
    }
    made = {
        copy["barcode"]: (names[1][copy["place"]], copy["shelf"], copy["branch"])
        for copy in theirs["hard_copies"].values()
        if copy["barcode"] in wanted
    }
    there = {copy["barcode"]: copy["branch"] for copy in theirs["hard_copies"].values() if copy["branch"] == "main"}
    assert made == {barcode: (*copy[:2], there.get(barcode, "east")) for barcode, copy in wanted.items()}
    assert {record["name"]: KINDS[record["kind"]] for record in ours["authorities"].values()}.items() <= {
        record["name"]: record["kind"] for record in theirs["authorities"].values()
    }.items()
    kept = [
        {
            record["name"]: (title[record["kept"]["ref"]], record["kept"]["by"])
            for record in side["collections"].values()
        }
        for title, side in zip(titles, (ours, theirs), strict=True)
    ]
    assert kept[0] == kept[1]
