"""Undescribed fields become columns: typed by all records, the same from night to night, without the loss of a value (I6, I7)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.records.shapes.observation import MAX_FIELDS, MAX_MEMBERS, OTHERS, ObservedColumn, Observer, RecordShape
from pipelines.records.stager import Stager
from pipelines.records.tables.observed_columns import MAX_COLUMNS, observe_columns, with_columns
from pipelines.records.tables.registry import STAGED
from tests.records.scalars import lost

TODAY, TOMORROW = "2026-11-22", "2026-11-23"
Record = dict[str, Any]


def shape_of(records: Sequence[Record]) -> RecordShape:
    observer = Observer()
    observer.observe(records)
    return observer.shape


def observed(
    records: Sequence[Record],
    resource: str = "tasks",
    earlier: Sequence[ObservedColumn] = (),
    today: str = TODAY,
) -> list[ObservedColumn]:
    return observe_columns(shape_of(records), STAGED[resource], earlier=earlier, today=today)


def staged(
    records: Sequence[Record], resource: str = "tasks", columns: Sequence[ObservedColumn] | None = None
) -> list[Record]:
    """The rows of the resource's table with the columns that these records give."""
    table_columns = observed(records, resource) if columns is None else columns
    payloads = [json.dumps(record).encode() for record in records]
    hashes = [hashlib.sha256(payload).hexdigest() for payload in payloads]
    batch = Stager(resource, table_columns)(payloads, hashes).tables[resource]
    batch.validate(full=True)
    assert batch.schema.equals(with_columns(STAGED[resource][0], table_columns).schema, check_metadata=True)
    return batch.to_pylist()


def types_of(columns: Sequence[ObservedColumn]) -> dict[str, str]:
    return {column.name: column.type for column in columns}


@pytest.mark.parametrize(
    ("values", "column_type", "rows"),
    [
        ([True, None, False], "boolean", [True, None, False]),
        ([1, 2**62], "integer", [1, 2**62]),
        ([1, 2.5], "number", [1.0, 2.5]),
        ([1, 2**70], "text", ["1", str(2**70)]),
        (["2026-01-31", None], "date", [date(2026, 1, 31), None]),
        (["2026-01-31", "1984"], "text", ["2026-01-31", "1984"]),
        (["2026-01-31T10:00:00Z"], "text", ["2026-01-31T10:00:00Z"]),
        (["a", 7, True], "text", ["a", "7", "true"]),
        ([["a", "b"], []], "json", ['["a","b"]', "[]"]),
        (["a", ["b"]], "json", ['"a"', '["b"]']),
    ],
)
def test_a_scalar_is_a_column_of_the_type_of_all_its_values(
    values: list[Any], column_type: str, rows: list[Any]
) -> None:
    records = [{"id": number, "further": value} for number, value in enumerate(values)]
    assert types_of(observed(records)) == {"further": column_type}
    assert [row["further"] for row in staged(records)] == rows
    assert [row["residue"] for row in staged(records)] == [None] * len(values)


def test_a_number_that_a_column_would_round_is_residue() -> None:
    rows = staged([{"id": 1, "further": 2**53 + 1}, {"id": 2, "further": 1.5}])
    assert [(row["further"], row["residue"]) for row in rows] == [(None, f'{{"further":{2**53 + 1}}}'), (1.5, None)]


def test_an_object_with_an_id_is_two_columns() -> None:
    """`location` instead of `location_id` fills the described column, so that joins work; its name is a column of its own."""
    records = [
        {"id": 1, "location": {"id": 5, "name": "Main"}},
        {"id": 2, "location": None},
        {"id": 3, "location_id": 7},
    ]
    objects, mixed = records[:2], records
    assert types_of(observed(objects, "hard_copies")) == {"location_id": "integer", "location_name": "text"}
    rows = staged(objects, "hard_copies")
    assert [(row["location_id"], row["location_name"]) for row in rows] == [(5, "Main"), (None, None)]
    assert [row["location_id"] for row in staged(mixed, "hard_copies")] == [None, None, 7]
    assert staged(mixed, "hard_copies")[0]["location_id_2"] == 5


def test_values_that_a_described_column_cannot_hold_have_a_column_beside_it() -> None:
    records = [{"id": "a-1", "acquired_on": "2020-01-31T00:00:00Z", "publication_id": {"id": 3}}]
    assert types_of(observed(records, "hard_copies")) == {
        "acquired_on_raw": "text",
        "id_raw": "text",
        "publication_id_raw": "json",
    }
    [row] = staged(records, "hard_copies")
    assert (row["id_raw"], row["acquired_on_raw"], row["publication_id_raw"]) == (
        "a-1",
        "2020-01-31T00:00:00Z",
        '{"id":3}',
    )
    assert row["residue"] is None


def test_entries_of_a_described_list_that_say_more_are_kept_as_json() -> None:
    records = [{"id": 1, "name": "Twain", "variants": [{"name": "Clemens", "language": "en"}]}]
    [row] = staged(records, "authorities")
    assert json.loads(row["variants"]) == [{"name": "Clemens", "language": "en"}]
    assert row["residue"] is None
    assert types_of(observed([{"id": 1, "variants": ["Clemens"]}], "authorities")) == {}


def test_names_are_told_apart_without_case() -> None:
    """DuckDB compares names without case."""
    records = [{"id": 1, "Shelf": 1, "shelf": 2, "a.b": 3, "a": {"b": 4}, "residue": 5, "sha256": 6}]
    columns = observed(records)
    names = [column.name.casefold() for column in columns]
    assert len(names) == len({*names, *(column.name for column in STAGED["tasks"][0].columns)} - _described())
    [row] = staged(records)
    assert sorted(value for name, value in row.items() if type(value) is int and name != "id") == [1, 2, 3, 4, 5, 6]


def _described() -> set[str]:
    return {column.name for column in STAGED["tasks"][0].columns}


def test_columns_and_fields_are_limited() -> None:
    """I13: a hostile library makes neither a table with thousands of columns nor a manifest of megabytes."""
    records = [{"id": 1, **{f"key{number}": number for number in range(MAX_FIELDS + 10)}}]
    shape = shape_of(records)
    assert len(shape.fields) == MAX_FIELDS + 1
    assert shape.fields[OTHERS].seen == 11
    assert len(observed(records)) == MAX_COLUMNS
    [row] = staged(records)
    assert len(json.loads(row["residue"])) == len(records[0]) - 1 - MAX_COLUMNS
    for name in ("bad\x00key", "x" * 500, ""):
        assert shape_of([{"id": 1, name: 1}]).fields.keys() == {"id", OTHERS}


def test_the_keys_of_a_map_are_values() -> None:
    """A map from names to values is one column, and the shape does not repeat its keys, which may name people."""
    votes = [{"id": 1, "votes": {f"person{number}@library.example": number for number in range(MAX_MEMBERS + 1)}}]
    shape = shape_of([{"id": 0, "votes": {"first@library.example": True}}, *votes])
    assert [*shape.fields["votes"].members] == ["*"]
    assert shape.fields["votes"].members["*"].kinds == {"boolean": 1, "integer": MAX_MEMBERS + 1}
    assert types_of(observed(votes)) == {"votes": "json"}
    assert json.loads(staged(votes)[0]["votes"]) == votes[0]["votes"]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["2026-01-31", "2026-01-31T10:00:00Z", "", "https://s.example/f?sig=1"])
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "name", "a", "b", "url"]) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.sampled_from(["location", "location_id", "status", "title", "a", "a_b", "id", "avatar", "roles", "variants"])
made_up = st.lists(st.dictionaries(names | st.text(max_size=3), values, max_size=6), min_size=1, max_size=4)


@given(made_up, st.sampled_from(["hard_copies", "tasks", "users", "authorities"]), st.booleans())
def test_every_scalar_is_in_a_column_or_in_the_residue(records: list[Record], resource: str, is_observed: bool) -> None:
    """I6: whatever the shape, with observed columns and without, each scalar of a record is in its row or in the rows of its list."""
    columns = observed(records, resource) if is_observed else []
    for record in records:
        staged = Stager(resource, columns)([json.dumps(record).encode()], ["hash"])
        assert lost(record, staged.tables.values()) == []


@pytest.mark.long
@given(made_up, made_up)
def test_a_second_night_keeps_every_column(first: list[Record], second: list[Record]) -> None:
    before = observed(first)
    after = observed(second, earlier=before, today=TOMORROW)
    assert [column.path for column in after][: len(before)] == [column.path for column in before]
    assert {column.name for column in before} <= {column.name for column in after}
    assert len({column.name.casefold() for column in after}) == len(after)
    staged(second, columns=after)
