"""What the name of a field says, in any spelling: numbers of records count within one library only."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.records.shapes.field_names import is_named_as_id, may_name_records, resource_named, stem_of
from pipelines.records.shapes.observation import Observer


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("publicationId", 7, True),
        ("members", [{"publication_id": 7}], True),
        ("items", [{"publication": {"id": 7}, "position": 1}], True),
        ("curator", 2, True),
        ("shelf", {"room": {"locationIds": [3]}}, True),
        ("external_id", "A-12", False),
        ("year", 1984, False),
        ("borrower", {"number": 7}, True),
        ("book_no", 7, True),
        ("item", {"ref": "7"}, True),
        ("see-also", {"the-books": [{"nr": 7}]}, True),
        ("loan", {"to": {"user": {"key": [7]}}}, True),
        ("borrower", {"card": {"number": 7}}, False),
        ("item", {"price": 7}, False),
        ("box", {"number": 7}, False),
        ("location", "Main building", False),
        ("publication_id", None, False),
    ],
)
def test_what_may_have_numbers_of_records(name: str, value: Any, *, expected: bool) -> None:
    """At any depth, by the name of the field or of a member; texts that are no numbers name no record of the service."""
    observer = Observer()
    observer.observe([{name: value}])
    assert may_name_records(name, observer.shape.fields[name]) is expected


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        *((name, "publications") for name in ("publication_id", "publication.id", "PublicationID", "BOOKIDS")),
        *((name, None) for name in ("paid", "valid", "bids", "userpaid")),
    ],
)
def test_a_name_is_read_by_its_words(name: str, resource: str | None) -> None:
    """In any spelling; other words end in `id` as well."""
    assert (is_named_as_id(name) and resource_named(stem_of(name))) == (resource or False)
