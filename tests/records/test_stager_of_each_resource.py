"""Every resource: each record becomes one row, whatever it holds, and no address leaves it (I6, I7, I10)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.inventory import RESOURCES
from pipelines.records.batches import StagedBatch
from pipelines.records.shapes.observation import ObservedColumn
from pipelines.records.stager import Stager
from pipelines.records.tables.observed_columns import ColumnType
from pipelines.records.tables.registry import STAGED
from pipelines.records.values import record_ids
from tests.records.json_values import Members, any_json, briefly, has_one_id, records, scalars, text_of

EVERY_RESOURCE = pytest.mark.parametrize("resource", RESOURCES)
SIGNED = "https://storage.example/f.png?X-Amz-Signature=abc&X-Amz-Expires=9"


def stage(resource: str, payloads: Sequence[str]) -> StagedBatch:
    encoded = [payload.encode() for payload in payloads]
    return Stager(resource)(encoded, [hashlib.sha256(payload).hexdigest() for payload in encoded])


def staged_one(resource: str, record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], StagedBatch]:
    """The row of one record, its residue, and the whole staged batch."""
    staged = stage(resource, [json.dumps(record)])
    [row] = staged.tables[STAGED[resource][0].name].to_pylist()
    return row, json.loads(row["residue"] or "{}"), staged


def records_of(resource: str) -> st.SearchStrategy[Any]:
    """Records of about the right form, with wrong types, repeated keys and unknown keys."""
    if resource == "publications":
        return records | any_json
    table, *lists = STAGED[resource]
    entries = st.lists(scalars | st.dictionaries(st.sampled_from(["id", "name", "x"]), scalars), max_size=3)
    members = [st.tuples(st.just(column.name), scalars | any_json) for column in table.columns]
    members += [st.tuples(st.just(list_table.entries), entries | any_json) for list_table in lists]
    members.append(
        st.tuples(st.sampled_from(["avatar", "url", "created_at", "roles[0].id"]) | st.text(max_size=5), any_json)
    )
    return briefly(st.lists(st.one_of(members), max_size=8).map(_members) | any_json)


def _members(pairs: list[tuple[str, Any]]) -> Members:
    plain = [(key, Members(tuple(value.items())) if isinstance(value, dict) else value) for key, value in pairs]
    return Members(tuple((key, _inner(value)) for key, value in plain))


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        return Members(tuple(value.items()))
    return [_inner(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.long
@EVERY_RESOURCE
class TestTotal:
    """No value of any kind stops the staging (I7)."""

    @given(data=st.data())
    def test_one_row_a_record_whatever_it_holds(self, resource: str, data: st.DataObject) -> None:
        """Every record is one row with its own hash and the id of the raw table, and every batch has its table's schema."""
        values = data.draw(st.lists(records_of(resource).filter(has_one_id), max_size=4))
        payloads = [text_of(value) for value in values]
        staged = stage(resource, payloads)
        rows = staged.tables[STAGED[resource][0].name].to_pylist()
        assert [row["sha256"] for row in rows] == [hashlib.sha256(payload.encode()).hexdigest() for payload in payloads]
        assert [row["id"] for row in rows] == record_ids([payload.encode() for payload in payloads])
        for table in STAGED[resource]:
            batch = staged.tables[table.name]
            batch.validate(full=True)
            assert batch.schema.equals(table.schema, check_metadata=True)
            required = [column.name for column in table.columns if column.required]
            assert [name for name in required if batch.column(name).null_count] == []

    @given(data=st.data())
    def test_in_one_batch_or_one_by_one(self, resource: str, data: st.DataObject) -> None:
        """An irregular record does not change the staging of another one, and a second staging gives the same rows."""
        payloads = [text_of(value) for value in data.draw(st.lists(records_of(resource), min_size=1, max_size=4))]
        whole, pieces = stage(resource, payloads), [stage(resource, [payload]) for payload in payloads]
        for name, batch in whole.tables.items():
            joined = pa.Table.from_batches([piece.tables[name] for piece in pieces]).combine_chunks()
            assert pa.Table.from_batches([batch]).equals(joined)
        assert whole.tables == stage(resource, payloads).tables
        assert whole.residue == sum((piece.residue for piece in pieces), Counter())


def test_what_a_column_cannot_hold_is_residue() -> None:
    """Invalid numbers and dates are residue; the valid values beside them have columns."""
    row, residue, _staged = staged_one(
        "hard_copies", {"id": "12", "publication_id": "x", "acquired_on": "7/19/1984", "barcode": 17, "shelf": [1]}
    )
    assert (row["id"], row["publication_id"], row["acquired_on"], row["barcode"]) == (12, None, None, "17")
    assert residue == {"publication_id": "x", "acquired_on": "7/19/1984", "shelf": [1]}


@EVERY_RESOURCE
@pytest.mark.parametrize(
    "sent",
    [
        {"avatar": {"id": "a", "url": SIGNED, "metadata": {"size": 7}, "sizes": [{"thumb_url": SIGNED}]}},
        {"avatar": SIGNED},
        {"url": SIGNED, "thumb_url": SIGNED, "preview_url": SIGNED, "avatar_url": SIGNED},
        {"attachments": [{"file": {"url": SIGNED}}], "link": SIGNED, "text": f"see {SIGNED} now"},
        {
            "cover": {"id": "f", "url": SIGNED, "thumb_url": SIGNED},
            "assets": [{"url": SIGNED, "file": {"url": SIGNED}}],
        },
    ],
    ids=["object", "bare", "by name", "anywhere", "files"],
)
def test_no_address_leaves_the_payload(resource: str, sent: dict[str, Any]) -> None:
    """I10: signed addresses are in no table, not even in the residue, wherever a service puts them."""
    _row, _residue, staged = staged_one(resource, {"id": 1, **sent})
    for batch in staged.tables.values():
        assert "Amz-Signature" not in json.dumps(batch.to_pylist(), default=str)


@pytest.mark.parametrize(
    ("sent", "column", "expected_residue"),
    [
        ({"location": {"id": 5}}, 5, {}),
        ({"location_id": None, "location": {"id": 5}}, 5, {}),
        ({"location_id": 4, "location": {"id": 5}}, 4, {"location.id": 5}),
    ],
)
def test_of_two_keys_of_a_column_that_of_its_own_name_comes_first(
    sent: dict[str, Any], column: int, expected_residue: dict[str, Any]
) -> None:
    """The other one fills the column where that has nothing, and is residue elsewhere (I6)."""
    learned = ObservedColumn("location_id", ("location", "id"), ColumnType.INTEGER, "2026-11-20")
    staged = Stager("hard_copies", [learned])([json.dumps({"id": 1, **sent}).encode()], ["0"])
    [row] = staged.tables["hard_copies"].to_pylist()
    assert (row["location_id"], json.loads(row["residue"] or "{}")) == (column, expected_residue)


@pytest.mark.parametrize(
    "text",
    [
        "https://" * 200_000,
        ("https://x?" + "b" * 20) * 50_000,
        "https://x/?" + "sig" * 500_000,
        "https://x?a&" * 100_000,
    ],
    ids=["schemes", "queries", "almost signed", "joined"],
)
@pytest.mark.timeout(120)
def test_long_texts_are_searched_once(text: str) -> None:
    """I13: the search for signed addresses takes linear time, whatever text a hostile library sends."""
    _row, residue, _staged = staged_one("tasks", {"id": 1, "odd": text})
    assert residue == {"odd": text}


@pytest.mark.parametrize(
    ("resource", "entries", "sent", "column", "rows", "expected_residue"),
    [
        ("users", "roles", ["admin", 7, None], "role", ["admin", "7", None], {}),
        ("users", "roles", [{"id": 4, "name": "admin"}], "role", ["admin"], {"roles[0].id": 4}),
        ("users", "roles", "admin", "role", [], {"roles": "admin"}),
        (
            "collections",
            "publication_ids",
            [7, "8", {"id": 9, "title": "T"}, "nine"],
            "publication_id",
            [7, 8, 9, None],
            {"publication_ids[2].title": "T", "publication_ids[3]": "nine"},
        ),
    ],
)
def test_entries_of_a_list(
    resource: str, entries: str, sent: object, *, column: str, rows: list[Any], expected_residue: dict[str, Any]
) -> None:
    """Names of roles (service.md#users) and ids of publications, also as objects; other shapes lose nothing."""
    _row, residue, staged = staged_one(resource, {"id": 3, entries: sent})
    assert [row[column] for row in staged.tables[STAGED[resource][1].name].to_pylist()] == rows
    assert residue == expected_residue
