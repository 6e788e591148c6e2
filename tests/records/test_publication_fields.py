"""A field of a publication is one entry of `PUBLICATION_FIELDS`; a test fails where something does not follow from the entry."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from pipelines.records.forms import form_of
from pipelines.records.matching import comparable
from pipelines.records.stager import Stager
from pipelines.records.tables.publication_fields import PUBLICATION_FIELDS, FieldType, PublicationField
from pipelines.records.values import compact_json

VALUES: dict[FieldType, Any] = {
    FieldType.TEXT: "de",
    FieldType.DATE: "2020-02-29",
    FieldType.REFERENCE: {"id": 7, "name": "A publisher"},
    FieldType.LIST: [{"name": "A name", "type": "person", "value": "A value"}],
}
"""Type → a value of a field of it. The id, the cover and the assets are not sent as fields."""

every_field = pytest.mark.parametrize(
    "field", [field for field in PUBLICATION_FIELDS if field.type in VALUES], ids=lambda field: field.name
)


@every_field
def test_a_value_has_its_columns_is_sent_and_is_compared(field: PublicationField) -> None:
    """A list has a row in a table of its own."""
    record = {"id": 1, field.name: VALUES[field.type]}
    payload = compact_json(record).encode()
    tables = dict(Stager("publications")([payload], [hashlib.sha256(payload).hexdigest()]).tables)
    (row,) = tables.pop("publications").to_pylist()
    assert [name for name in field.columns if row[name] is None] == []
    assert sum(table.num_rows for table in tables.values()) == (field.type is FieldType.LIST)
    assert comparable(form_of(record).fields).keys() == {field.name}


@every_field
def test_a_value_of_another_form_is_listed_as_not_sent(field: PublicationField) -> None:
    form = form_of({"id": 1, field.name: 17})
    assert (form.fields, form.unsent) == ({}, {field.name: 17})
