"""Fields of publications that the service does not document are moved where the target's description or its records have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import HTML, ISSUES, Plan
from pipelines.migration.model.resource_types import ResourceType
from pipelines.records.left_out import LeftOut
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import FEW as RECORDS
from tests.migration.other_resources.full_library import small_pair, small_sandbox
from tests.sandbox.process import SandboxProcess

__all__ = ["small_pair", "small_sandbox"]

DOCUMENTED = {
    name: {"from": name}
    for name in (
        "title",
        "publishable_type",
        "published_on",
        "abstract",
        "authors",
        "identifiers",
        "categories",
        "contributor",
        "organization",
        "cover",
        "assets",
        "assets_attributes",
    )
}
TEXT_OR_NULL = {"type": ["string", "null"]}
ADDED: dict[str, Any] = {
    "subtitle": {"schema": TEXT_OR_NULL, "seed": ["A subtitle", "Another: with a colon", None, ""]},
    "pages": {"schema": {"type": ["integer", "null"]}, "seed": [120, 0, None, 48]},
    "in_print": {"schema": {"type": ["boolean", "null"]}, "seed": [True, False]},
    "keywords": {
        "schema": {"type": "array", "items": {"type": "string"}},
        "seed": [["tides", "moon"], ["moon", "tides"], []],
    },
    "shelf": {
        "schema": {
            "type": ["object", "null"],
            "properties": {"side": {"type": "string"}, "order": {"type": "integer"}},
        },
        "seed": [{"side": "left", "order": 1}, None, {"side": "right", "order": 2}],
    },
    "content": {"schema": TEXT_OR_NULL, "seed": ["text", "hypertext"]},
}
"""A text, a number, a truth value, a list, an object, and a field with the name of a column of ours."""


def reshape(pair: LibraryPair, tenant: str, added: dict[str, Any], description: Any = "follows") -> None:
    """Give the publications of a library these fields besides the documented ones."""
    pair.sandbox.reshape({"publications": {"fields": {**DOCUMENTED, **added}}}, tenant, description=description)


def without_seeds(added: dict[str, Any]) -> dict[str, Any]:
    """The same fields, empty in records in which nobody has set them."""
    return {name: {"schema": field["schema"]} for name, field in added.items()}


def back_up(pair: LibraryPair, run: str = "run", tenant: str = "old") -> Snapshot:
    return pair.back_up(run, tenant=tenant, files=False)


def dump(pair: LibraryPair, tenant: str, fields: dict[str, Any]) -> list[str]:
    """What a library says in these fields, by title, compared without our own code."""
    return sorted(
        json.dumps({name: record[name] for name in ("title", *fields)}, sort_keys=True)
        for record in pair.library(tenant).publications()
    )


def lines(plan: Plan, field: str) -> list[str]:
    """The lines of issues.tsv about a field."""
    return [line for line in plan.path(ISSUES).read_text().splitlines() if f"\t{field}\t" in line]


def learned(plan: Plan) -> ResourceType:
    return plan.types["publications"]


@pytest.mark.long
@pytest.mark.parametrize("description", ["follows", "missing"])
def test_the_fields_that_the_target_has_are_moved(pair: LibraryPair, description: str) -> None:
    """Without a description they are those that a record of the target has, which proves only that it has had them."""
    reshape(pair, "library", ADDED)
    reshape(pair, pair.target, without_seeds(ADDED), description)
    [first] = pair.publications()
    if description == "missing":
        shown = {
            "subtitle": "s",
            "pages": 1,
            "in_print": True,
            "keywords": ["k"],
            "shelf": {"order": 9},
            "content": "c",
        }
        pair.call("PATCH", f"publications/{first['id']}", shown)
    plan = pair.plan(back_up(pair), overwrite=description == "missing")
    assert sorted(learned(plan).fields) == sorted(ADDED)
    noted = any("it is not proved" in note and "`bookferry migrate verify`" in note for note in plan.facts.notes)
    assert noted == (description == "missing") == ("it is not proved" in plan.path(HTML).read_text())
    assert not set(plan.facts.not_moved.by_field) & set(ADDED)
    applied = pair.apply(plan)
    assert (applied.failures, applied.lacking.total) == ([], 0)
    assert dump(pair, pair.target, ADDED) == dump(pair, "library", ADDED)
    verification = pair.verify(plan)
    assert (verification.equal, verification.as_planned) == (True, True)
    second_plan = pair.plan(back_up(pair, "again"))
    assert second_plan.facts.empty, second_plan.facts.counts
    assert second_plan.facts.count(Action.CONFLICT) == 0


@pytest.mark.long
def test_what_authors_have_besides_is_moved_where_all_else_is_documented(pair: LibraryPair) -> None:
    members = {name: {"type": "string"} for name in ("name", "type", "orcid", "affiliation")}
    authors = [{"name": "Ada", "type": "person", "orcid": "0000-0002-1825-0097"}, {"name": "Bo", "type": "person"}]
    schema = {"type": "array", "items": {"type": "object", "properties": members}}
    added = {"authors": {"schema": schema, "seed": [authors, authors[1:]]}}
    reshape(pair, "library", added)
    reshape(pair, pair.target, without_seeds(added))
    plan = pair.plan(back_up(pair))
    assert (plan.facts.not_moved.by_field, pair.apply(plan).failures) == ({}, [])
    assert dump(pair, pair.target, added) == dump(pair, "library", added)
    assert pair.verify(plan).equal
    assert pair.plan(back_up(pair, "again")).facts.empty


def test_links_and_signed_addresses_are_not_moved(pair: LibraryPair) -> None:
    """A number in another library is another record; an address of a file changes in every response."""
    signed = "https://storage.example/a.pdf?X-Amz-Signature=abc"
    added = {
        "series_id": {"schema": {}, "seed": [3]},
        "edited_by": {"schema": {}, "seed": [{"id": 4, "name": "A"}]},
        "parts": {"schema": {}, "seed": [[{"id": 1}, {"id": 2}]]},
        "collections": {"schema": {}, "seed": [[1, 2]]},
        "scan": {"schema": {}, "seed": [signed]},
        "visits_count": {"schema": {}, "seed": [7], "read_only": True},
    }
    reshape(pair, "library", added)
    reshape(pair, pair.target, added)
    plan = pair.plan(back_up(pair))
    assert learned(plan).left_out == {
        "collections": LeftOut.LINK,
        "edited_by/id": LeftOut.UNKNOWN_REFERENCE,
        "edited_by/name": LeftOut.UNKNOWN_REFERENCE,
        "parts": LeftOut.UNKNOWN_REFERENCE,
        "series_id": LeftOut.UNKNOWN_REFERENCE,
    }
    assert "by its number in the source" in lines(plan, "collections")[0]
    assert "nobody has said what it is there, so it is not moved" in lines(plan, "series_id")[0]
    assert "signed addresses" in lines(plan, "scan")[0]
    assert "the service fills this field" in lines(plan, "visits_count")[0]
    assert "X-Amz-Signature" not in plan.path(ISSUES).read_text()


def test_a_field_that_the_target_refuses_is_taken_out_of_the_mapping_file(pair: LibraryPair) -> None:
    """Its own records had the field, but it takes none any more."""
    reshape(pair, "library", {"subtitle": ADDED["subtitle"]})
    reshape(pair, pair.target, {"subtitle": ADDED["subtitle"]}, "missing")
    snapshot = back_up(pair)
    plan = pair.plan(snapshot, overwrite=True)
    reshape(pair, pair.target, {"subtitle": {**ADDED["subtitle"], "read_only": True}}, "missing")
    refused = pair.apply(plan).failures
    assert refused
    assert all(
        "If the target does not take subtitle: `bookferry migrate map old new`" in failure.problem
        for failure in refused
    )
    mapping = pair.map(snapshot)
    mapping.path.write_text(mapping.text.replace('"subtitle"', ""))
    applied = pair.apply(pair.plan(snapshot, overwrite=True))
    assert (applied.failures, len(pair.publications())) == ([], RECORDS)


def test_a_field_that_the_target_does_not_keep_is_counted(pair: LibraryPair) -> None:
    """By apply, by status and by verify. A second plan does not send it again."""
    added = {"subtitle": {"schema": TEXT_OR_NULL, "seed": ["A subtitle", None]}}
    reshape(pair, "library", added)
    reshape(pair, pair.target, without_seeds(added))
    plan = pair.plan(back_up(pair))
    pair.sandbox.change(pair.target, variations={"dropped_field": "subtitle"})
    applied = pair.apply(plan)
    lost = RECORDS // 2
    assert applied.lacking.writes == len(applied.findings) == lost
    assert {finding.problem for finding in applied.findings} == {
        "subtitle: the service answered without it, so it does not keep it."
    }
    assert pair.status(plan).lacking == applied.lacking
    verification = pair.verify(plan)
    assert (verification.equal, verification.differing, len(verification.findings)) == (False, lost, lost)
    assert {finding.field for finding in verification.findings} == {"subtitle"}
    assert len(plan.path(verification.table).read_text().splitlines()) == 1 + lost
    second_plan = pair.plan(back_up(pair, "again"))
    assert (second_plan.facts.empty, second_plan.facts.count(Action.CONFLICT)) == (True, 0)


@pytest.mark.long
def test_a_lost_response_finds_the_record_with_its_additional_fields(pair: LibraryPair) -> None:
    """Two records differ in nothing but such a field: each write is looked up by it, and none is there twice (I8)."""
    added = {"volume": {"schema": TEXT_OR_NULL}}
    reshape(pair, "library", added)
    reshape(pair, pair.target, added)
    source = pair.library()
    for volume in ("1", "2", "3"):
        source.call("POST", "publications", {"title": "The same title", "volume": volume})
    plan = pair.plan(back_up(pair))
    pair.sandbox.fault("status", pair.target, method="POST", status=500, when="after", times=RECORDS)
    pair.apply(plan)
    volumes = sorted(record["volume"] for record in pair.publications() if record["title"] == "The same title")
    assert volumes == ["1", "2", "3"]
    assert pair.verify(plan).equal


@pytest.mark.long
def test_fields_of_a_source_of_version_2_are_moved_too(
    sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`import_state`, which version 2 announces as deprecated, is left behind with that reason."""
    monkeypatch.setenv("TEST_USER", sandbox.user)
    monkeypatch.setenv("TEST_PASSWORD", sandbox.password)
    sandbox.change(variations={"extra_fields": True})
    pair = LibraryPair.at(tmp_path, sandbox, "library", "target")
    reshape(pair, pair.target, {"language": {"schema": TEXT_OR_NULL}, "review": {"schema": {}}})
    plan = pair.plan(back_up(pair))
    assert [*learned(plan).fields] == ["language", "review"]
    assert learned(plan).left_out == {"pmcid": LeftOut.NOT_DESCRIBED}
    assert "[identifiers.pmcid]" in lines(plan, "pmcid")[0]
    assert "deprecated" in lines(plan, "import_state")[0]
    assert pair.apply(plan).failures == []
    assert pair.verify(plan).equal
    assert {json.dumps(record["review"]) for record in pair.publications()} == {'{"notes": [], "state": "open"}'}
