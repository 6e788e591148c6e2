"""What is learned of a resource: a number of the source is sent only where it is known what it leads to."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.migration.mapping.learned_fields import learn_from_shapes
from pipelines.migration.model.field_mapping import FieldMapping
from pipelines.migration.model.plan import PlannedReference
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import PUBLICATIONS, RESOURCE_TYPES, ResourceType
from pipelines.migration.plan.build import without_questions
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import nested
from pipelines.records.shapes.observation import Observer, RecordShape
from pipelines.shapes.model import PayloadSchema, ResourceSchema
from tests.migration.mapping.learning import body_of, of_type, takes

PUBLICATION = publication_type(STANDARD_KINDS)


def learned(resource: str, record: dict[str, Any], schema: ResourceSchema | None = None) -> ResourceType:
    """Learned from a record, and from a description of the target, which has no record then; else one with the same fields."""
    assumed = PUBLICATION if resource == PUBLICATIONS else RESOURCE_TYPES[resource]
    observer = Observer()
    observer.observe([{name: value for name, value in record.items() if name not in assumed.ruled}])
    target = observer.shape if schema is None else RecordShape()
    learned_type = learn_from_shapes(assumed, observer.shape, target, schema or ResourceSchema())
    return publication_type(STANDARD_KINDS, learned=learned_type) if resource == PUBLICATIONS else learned_type


@pytest.mark.parametrize(
    ("resource", "field", "value"),
    [
        ("collections", "records", [1, 2]),
        ("collections", "items", [{"position": 1, "publication": {"id": 7}, "added_by_id": 3}]),
        ("collections", "items", [{"position": 1, "record_id": 7}]),
        ("tasks", "subjectId", 7),
        ("tasks", "subject_id", 7.0),
        ("tasks", "book_ids", {"7": True, "8": False}),
        (PUBLICATIONS, "copies", 3),
        ("tasks", "assignee_id", "A-12"),
        ("tasks", "reviewerId", "A-12"),
        ("collections", "publication_ids", ["P-1", "P-2"]),
    ],
)
def test_numbers_that_lead_nobody_knows_where_are_left_out(resource: str, field: str, value: Any) -> None:
    """As a plain value, the number would be that of another record in the target."""
    learned_type = without_questions(
        learned(resource, {"id": 1, "name": "N", "title": "T", "barcode": "B", field: value})
    )
    assert field not in learned_type.fields
    assert learned_type.left_out[field] == LeftOut.UNKNOWN_REFERENCE


def test_only_a_reference_of_the_record_itself_leads_to_its_own_kind_by_its_name() -> None:
    """The children of an entry are not those of the collection that has the list; a tree of entries is left out as a whole."""
    record = {
        "id": 1,
        "name": "N",
        "owner_id": 7,
        "book": 7,
        "parent_id": 7,
        "held": {"parent_id": 7},
        "of": [{"row": 7, "children": [8]}],
    }
    learned_type = learned("collections", record | {"nodes": [{"id": 7, "children": [{"id": 8, "children": []}]}]})
    assert learned_type.fields["parent_id"].leads_to == "collections"
    assert learned_type.fields["owner_id"].asks_where, "an owner may be an authority"
    assert learned_type.fields["book"].asks_where, "a book may be a copy"
    assert learned_type.fields["held/parent_id"].asks_where
    assert learned_type.fields["of"].entries["children"].asks_where
    assert learned_type.left_out == {"nodes": LeftOut.UNKNOWN_REFERENCE}


def test_what_json_api_has_in_attributes_and_relationships_is_known() -> None:
    record = {
        "id": "1",
        "type": "hard_copies",
        "attributes": {"barcode": "B", "note": "N"},
        "relationships": {
            "publication": {"data": {"type": "publications", "id": "7"}},
            "location": {"data": {"type": "locations", "id": "3"}},
        },
    }
    learned_type = learned("hard_copies", record)
    assert learned_type.keys[0][0] == "attributes/barcode"
    assert body_of(learned_type, record) == {
        "type": "hard_copies",
        "attributes": {"barcode": "B", "note": "N"},
        "relationships": {
            "publication": {"data": {"type": "publications", "id": "9"}},
            "location": {"data": {"type": "locations", "id": "9"}},
        },
    }
    cleared = learned_type.fields["relationships/location/data/id"].payload("relationships/location/data/id", None)
    assert nested(cleared) == {"relationships": {"location": {"data": None}}}


@pytest.mark.parametrize("resource", [PUBLICATIONS, "tasks"])
def test_the_reason_stands_beside_each_value_that_is_not_sent(resource: str) -> None:
    schema = takes(
        title="string",
        binding=of_type("string", choices=["paper"]),
        pages="integer null",
        marks=of_type("array", entries=of_type("string")),
        bought=of_type("string", format="date"),
        seen=of_type("string", format="date-time"),
        shelf="object",
        made=of_type("string", read_only=True),
    )
    record = {
        "id": 1,
        "title": "T",
        "binding": "leather",
        "pages": "xii",
        "marks": ["a", 1],
        "bought": "01.04.2010",
        "seen": "1 April, 10:30",
        "shelf": {"row": 2**70},
        "made": "by hand",
        "colour": "red",
    }
    form = learned(resource, record, schema).form(record)
    assert form.values == {"title": "T"}
    assert form.unsent == {name: value for name, value in record.items() if name not in {"id", "title"}}
    assert form.why == {
        "binding": LeftOut.NOT_A_CHOICE,
        "pages": LeftOut.OTHER_TYPE,
        "marks": LeftOut.OTHER_TYPE,
        "bought": LeftOut.OTHER_TYPE,
        "seen": LeftOut.OTHER_TYPE,
        "shelf": LeftOut.NOT_SENDABLE,
        "made": LeftOut.READ_ONLY,
        "colour": LeftOut.NOT_DESCRIBED,
    }
    undescribed = learned(resource, record, ResourceSchema()).left_out.get("colour")
    assert undescribed == (LeftOut.NOT_SHOWN if resource == PUBLICATIONS else None), "only publications are documented"


def test_documented_fields_of_publications_are_not_taken_for_others_of_a_similar_name() -> None:
    """`category_ids` is read neither as `categories`, which the document has, nor as `category`, which has names and no ids."""
    record = {"id": 1, "title": "T", "category": ["x"], "categories": [{"name": "Maps"}]}
    schema = takes(category_ids=of_type("array", entries=of_type("string")))
    learned_type = learned(PUBLICATIONS, record, schema)
    assert learned_type.values(record) == {"title": "T", "categories": [{"name": "Maps"}]}
    assert learned_type.form(record).unsent == {"category": ["x"]}


def test_a_link_among_addresses_is_named() -> None:
    """As in HAL; unless another field has that reference, and the record's own address."""
    addresses = {
        "self": "/hard_copies/1",
        "location": {"href": "/locations/7"},
        "publication": {"href": "/publications/3"},
    }
    record = {"id": 1, "barcode": "B", "publication_id": 3, "_links": addresses}
    form = learned("hard_copies", record).form(record)
    assert form.unsent == {"_links.location": {"href": "/locations/7"}}
    assert form.why == {"_links.location": LeftOut.LINK}


def test_a_reference_that_waits_for_another_member_of_its_object_is_set_with_it() -> None:
    """It leads to a record that is there, so that nothing has to be put into its value."""
    field = FieldMapping(leads_to="locations")
    assert PlannedReference([], 7, later=True).value(field, []) == 7


@pytest.mark.parametrize("is_open", [False, True])
def test_a_field_is_sent_as_the_target_spells_it(*, is_open: bool) -> None:
    """Both spellings are read, since a record that was moved has that of the target."""
    fields = {name: of_type() for name in ("barcode", "call_number", "location_id", "acquired-on")}
    schema = ResourceSchema(record=fields, create=PayloadSchema(fields, is_open=is_open))
    record = {"id": 1, "barcode": "B", "callNumber": "QA", "locationId": 7, "acquiredOn": "2020", "myShelf": "left"}
    learned_type = learned("hard_copies", record, schema)
    sent = {"barcode": "B", "call_number": "QA", "location_id": 9, "acquired-on": "2020"}
    assert body_of(learned_type, record) == sent | ({"myShelf": "left"} if is_open else {})
    assert learned_type.of_target.values(sent) == sent | ({"location_id": 9})
    assert learned("hard_copies", record).fields["callNumber"] == FieldMapping(), (
        "nothing shows how the target spells it"
    )
    in_object = takes(location=of_type(members={"id": of_type("integer")}))
    assert body_of(learned("hard_copies", record, in_object), record) == {"location": {"id": 9}}
