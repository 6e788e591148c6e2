"""Empty texts and lists of undocumented fields are sent with a new record, and equal null wherever records are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipelines.migration.model.actions import Action
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import (
    ALL_RESOURCES,
    back_up,
    plan_rows,
    records_of,
    small_pair,
    small_sandbox,
    token_of,
)
from tests.migration.test_additional_fields import DOCUMENTED

__all__ = ["small_pair", "small_sandbox"]

TEXT_OR_NULL = {"type": ["string", "null"]}
EMPTY: dict[str, Any] = {
    "nickname": {"schema": TEXT_OR_NULL, "seed": [""]},
    "marks": {"schema": {"type": "array", "items": {"type": "string"}}, "seed": [[]]},
}
COLLECTIONS = {
    "name": {"from": "name", "required": True},
    "description": {"from": "description"},
    "publication_ids": {"from": "publication_ids"},
}


def reshape(pair: LibraryPair, tenant: str, description: str, fields: dict[str, Any]) -> None:
    resources = {
        "collections": {"fields": {**COLLECTIONS, **fields}},
        "publications": {"fields": {**DOCUMENTED, **fields}},
    }
    shapes = {"description": description, "resources": resources}
    pair.sandbox.control("PUT", "settings", {"tenant": tenant, "shapes": shapes})
    if tenant == "library":
        source = replace(pair, target=tenant, token=token_of(pair, tenant))
        source.call("POST", "collections", {"name": "New", "nickname": "", "marks": []})


@pytest.mark.long
def test_a_new_record_has_the_empty_values_of_the_source(pair: LibraryPair) -> None:
    """A record that is there keeps its null: that says the same, and is no reason to change it."""
    without_seeds = {name: {"schema": field["schema"]} for name, field in EMPTY.items()}
    reshape(pair, "library", "follows", EMPTY)
    reshape(pair, pair.target, "follows", without_seeds)
    snapshot = back_up(pair, "run")
    plan = pair.plan(snapshot, resources=ALL_RESOURCES)
    created = {resource: plan_rows(plan, resource, Action.CREATE) for resource in ("collections", "publications")}
    assert {(row.payload["nickname"], *row.payload["marks"]) for rows in created.values() for row in rows} == {("",)}
    assert len(created["collections"]) == 1
    there = {resource: {*records_of(pair, resource)} for resource in created}
    applied = pair.apply(plan)
    assert ([failure.problem for failure in applied.failures], applied.lacking.total) == ([], 0)
    for resource, ids in there.items():
        records = records_of(pair, resource)
        assert {(records[one]["nickname"], records[one]["marks"]) for one in ids} == {(None, None)}
        assert all((one["nickname"], one["marks"]) == ("", []) for number, one in records.items() if number not in ids)
    with pair.migration() as migration:
        assert migration.verify(plan).equal
    assert pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES).facts.empty
