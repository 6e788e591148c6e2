"""What is learned of a resource: a number of the source is sent only where it is known what it leads to."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.migration.model.resource_types import RESOURCE_TYPES, LeftOut, ResourceType
from pipelines.migration.plan.learned_types import learn_type
from pipelines.records.shapes.observation import Observer
from pipelines.shapes.model import ResourceSchema


def learned(resource: str, record: dict[str, Any]) -> ResourceType:
    """Learned from records alone: the target has the same fields, and no description."""
    observer = Observer()
    observer.observe([record])
    return learn_type(RESOURCE_TYPES[resource], observer.shape, observer.shape, ResourceSchema())


@pytest.mark.parametrize(
    ("resource", "field", "value"),
    [
        ("collections", "records", [1, 2]),
        ("collections", "items", [{"position": 1, "publication": {"id": 7}, "added_by_id": 3}]),
        ("collections", "items", [{"position": 1, "record_id": 7}]),
        ("hard_copies", "holding", {"location_id": 7}),
        ("tasks", "subjectId", 7),
        ("tasks", "copies", 3),
        ("tasks", "assignee_id", "A-12"),
        ("tasks", "reviewerId", "A-12"),
        ("collections", "publication_ids", ["P-1", "P-2"]),
    ],
)
def test_numbers_that_lead_nobody_knows_where_are_left_out(resource: str, field: str, value: Any) -> None:
    """As a plain value, the number would be that of another record in the target."""
    found = learned(resource, {"id": 1, "name": "N", "title": "T", "barcode": "B", field: value})
    assert field not in found.fields
    assert found.left_out[field] == LeftOut.UNKNOWN_REFERENCE


@pytest.mark.parametrize(
    ("resource", "field", "entry", "leads_to", "sent"),
    [
        ("collections", "members", {"publication_id": 7}, "publications", {"publication_id": 9}),
        ("collections", "items", {"id": 1, "position": 2, "book": 7}, "publications", {"position": 2, "book": 9}),
        ("tasks", "assignees", {"user": {"id": 7, "name": "A"}}, "users", {"user": {"id": 9}}),
        ("tasks", "assignees", {"user": {"id": "7"}, "note": "N"}, "users", {"user": {"id": "9"}, "note": "N"}),
    ],
)
def test_a_reference_in_the_objects_of_a_list_is_known(
    resource: str, field: str, entry: dict[str, Any], leads_to: str, sent: dict[str, Any]
) -> None:
    found = learned(resource, {"id": 1, "name": "N", "title": "T", field: [entry]})
    assert found.references == {field: leads_to}
    [value] = found.values({field: [entry]})[field]
    assert (found.id_in(field, value), found.sent(field, [found.with_id(field, value, 9)])) == (7, [sent])


@pytest.mark.parametrize(
    ("field", "leads_to"),
    [
        ("publicationId", "publications"),
        ("publication-id", "publications"),
        ("assigneeId", "users"),
        ("book", "publications"),
    ],
)
def test_a_reference_is_known_in_any_spelling(field: str, leads_to: str) -> None:
    found = learned("tasks", {"id": 1, "title": "T", field: 7})
    assert found.references == {field: leads_to}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("priority", 3),
        ("due", "2026-12-01"),
        ("labels", ["a"]),
        ("done", True),
        ("external_id", "A-12"),
        ("wikidata_ids", ["Q42"]),
    ],
)
def test_other_values_are_sent(field: str, value: Any) -> None:
    found = learned("tasks", {"id": 1, "title": "T", field: value})
    assert field in found.fields
    assert not found.left_out
