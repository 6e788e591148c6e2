"""The three-way merge of publications: actions, patched fields and conflicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.migration.model.comparable import Field, digest
from pipelines.migration.plan.comparison import match
from pipelines.migration.plan.three_way_merge import merge_three_ways
from pipelines.store.parquet import quoted

FIELDS = (Field("title"), Field("abstract"), Field("categories", is_set=True), Field("content", is_additional=True))
Record = dict[str, Any]


class Merge:
    """The tables of a merge; by default record 1 of the source and record 7 of the target have the same identifier."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        columns = ", ".join(f"{quoted(field.column)} VARCHAR" for field in FIELDS)
        for side in ("source", "target"):
            self.database.execute(f"CREATE TABLE {side} (id BIGINT, fingerprint VARCHAR, content VARCHAR, {columns})")
            self.database.execute(f"CREATE TABLE {side}_keys (id BIGINT, type VARCHAR, value VARCHAR)")
        self.database.execute("CREATE TABLE written (source_id BIGINT, target_id BIGINT, wanted JSON, held JSON)")
        self.database.execute("CREATE TABLE decisions (source_id BIGINT, decision VARCHAR, target_id BIGINT)")
        self.database.execute("CREATE TABLE same_library AS SELECT false AS yes")

    def add(self, side: str, number: int, record: Record, key: str | None = "a") -> None:
        """Add a record to one side."""
        row = [number, None, f"{side} {number}", *(texts(record)[field.name] for field in FIELDS)]
        self.database.execute(f"INSERT INTO {side} VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        if key is not None:
            self.database.execute(f"INSERT INTO {side}_keys VALUES (?, 'doi', ?)", [number, key])

    def wrote(self, wanted: Record, held: Record, source: int = 1, target: int = 7) -> None:
        """An earlier plan wrote `wanted`, and the service then had `held`."""
        both = [
            json.dumps({name: digest(text) for name, text in texts(one).items() if name in one or name != "content"})
            for one in (wanted, held)
        ]
        self.database.execute("INSERT INTO written VALUES (?, ?, ?, ?)", [source, target, *both])

    def decide(self, decision: str, target: int | None = None, source: int = 1) -> None:
        """Add a decision."""
        self.database.execute("INSERT INTO decisions VALUES (?, ?, ?)", [source, decision, target])

    def merged(self) -> dict[int, tuple[str, int | None, list[str], list[str], str | None]]:
        """Source id → action, target id, fields, conflicts, reason."""
        match(self.database)
        merge_three_ways(self.database, FIELDS)
        columns = "source_id, action, target_id, fields, conflicts, reason"
        rows = self.database.execute(f"SELECT {columns} FROM merged").fetchall()
        assert len({row[0] for row in rows}) == len(rows), "a record in two classes"
        return {row[0]: (row[1], row[2], *(sorted(names) for names in row[3:5]), row[5]) for row in rows}


def texts(record: Record) -> dict[str, str | None]:
    return {
        field.name: None
        if record.get(field.name) in (None, [])
        else json.dumps(record[field.name], separators=(",", ":"))
        for field in FIELDS
    }


@pytest.fixture
def merge() -> Iterator[Merge]:
    merge = Merge()
    yield merge
    merge.database.close()


def merge_pair(merge: Merge, source: Record, target: Record) -> tuple[str, list[str], list[str]]:
    merge.add("source", 1, source)
    merge.add("target", 7, target)
    action, target_id, fields, conflicts, _reason = merge.merged()[1]
    assert target_id == 7
    return action, fields, conflicts


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ({"title": "A"}, {"title": "A"}, ("unchanged", [], [])),
        ({}, {}, ("unchanged", [], [])),
        ({"title": "A", "abstract": "B"}, {"title": "A"}, ("patch", ["abstract"], [])),
        ({"title": "A"}, {"title": "A", "abstract": "B"}, ("unchanged", [], [])),
        ({"title": "A"}, {"title": "B"}, ("conflict", [], ["title"])),
        ({"title": "A", "abstract": "B"}, {"title": "C"}, ("conflict", ["abstract"], ["title"])),
        ({"categories": ["x", "y"]}, {"categories": ["y", "x"]}, ("unchanged", [], [])),
        ({"categories": ["x", "y"]}, {"categories": ["x"]}, ("patch", ["categories"], [])),
        ({"categories": ["x"]}, {"categories": ["x", "y"]}, ("unchanged", [], [])),
        ({"categories": ["x", "z"]}, {"categories": ["x", "y"]}, ("conflict", [], ["categories"])),
    ],
)
def test_a_record_that_no_plan_wrote(merge: Merge, source: Record, target: Record, expected: object) -> None:
    assert merge_pair(merge, source, target) == expected


def test_the_digests_of_what_the_service_made_of_a_value(merge: Merge) -> None:
    """What the service made of them is named, also where it filled a field that was sent empty."""
    wanted = {"title": "A", "content": "C"}
    held = {"title": "a", "content": "C", "abstract": "B"}
    merge.wrote(wanted, held)
    merge.add("source", 1, wanted)
    merge.add("target", 7, held)
    merge.add("source", 2, {"title": "D"}, key="b")
    merge.add("target", 8, {"title": "E", "abstract": "F"}, key="b")
    merge.merged()
    rows = merge.database.execute("SELECT source_id, kept, target_digests FROM merged ORDER BY ALL").fetchall()
    assert rows == [(1, ["title", "abstract"], None), (2, [], None)]


@pytest.mark.parametrize(
    ("wanted", "held", "source", "target", "expected"),
    [
        pytest.param("A", "A", "A", "A", ("unchanged", [], []), id="nothing_happened"),
        pytest.param("A", "A", "B", "A", ("patch", ["title"], []), id="changed_in_the_source"),
        pytest.param("A", "A", "A", "B", ("conflict", [], ["title"]), id="edited_in_the_target"),
        pytest.param("A", "A", "B", "C", ("conflict", [], ["title"]), id="both"),
        pytest.param("A", "A", "B", "B", ("unchanged", [], []), id="both_alike"),
        pytest.param("A ", "A", "A ", "A", ("unchanged", [], []), id="the_service_keeps_it_otherwise"),
        pytest.param(None, None, "A", None, ("patch", ["title"], []), id="added_in_the_source"),
        pytest.param(None, None, None, "A", ("conflict", [], ["title"]), id="added_in_the_target"),
        pytest.param("A", "A", None, "A", ("patch", ["title"], []), id="removed_from_the_source"),
        pytest.param("A", "A", "A", None, ("conflict", [], ["title"]), id="removed_from_the_target"),
    ],
)
def test_a_record_that_an_earlier_plan_wrote(  # noqa: PLR0917  the cases' columns
    merge: Merge, wanted: str | None, held: str | None, source: str | None, target: str | None, expected: object
) -> None:
    merge.wrote({"title": wanted}, {"title": held})
    assert merge_pair(merge, {"title": source}, {"title": target}) == expected


def test_a_field_that_an_earlier_plan_did_not_send_is_not_taken_for_an_empty_one(merge: Merge) -> None:
    """A patch added the abstract; the title, which only the target has, is as it was."""
    both = json.dumps({"abstract": digest('"B"')})
    merge.database.execute("INSERT INTO written VALUES (1, 7, ?, ?)", [both, both])
    assert merge_pair(merge, {"abstract": "B"}, {"title": "A", "abstract": "B"}) == ("unchanged", [], [])


@pytest.mark.parametrize(
    ("wanted", "held", "source", "target", "expected"),
    [
        pytest.param({"content": "A"}, {"content": "A"}, "B", "A", "patch", id="changed_in_the_source"),
        pytest.param({"content": "A"}, {"content": "A"}, "A", "B", "conflict", id="edited_in_the_target"),
        pytest.param({"content": "A"}, {"content": "A"}, None, "A", "patch", id="removed_from_the_source"),
        pytest.param({"content": "A"}, {"content": None}, "A", None, "unchanged", id="the_service_does_not_keep_it"),
        pytest.param({}, {}, "A", None, "patch", id="a_plan_of_an_earlier_version_did_not_send_it"),
        pytest.param({}, {}, None, "A", "unchanged", id="only_the_target_has_it"),
        pytest.param({}, {}, "A", "B", "conflict", id="both_have_it"),
        pytest.param({}, {"content": "x"}, None, "x", "unchanged", id="the_service_filled_it"),
        pytest.param({}, {"content": "x"}, None, "y", "unchanged", id="the_service_changed_what_it_filled"),
        pytest.param({}, {"content": "x"}, "A", "x", "patch", id="added_in_the_source_where_the_service_filled_it"),
    ],
)
def test_an_additional_field_of_a_record_that_an_earlier_plan_wrote(  # noqa: PLR0917  the cases' columns
    merge: Merge, wanted: Record, held: Record, source: str | None, target: str | None, expected: str
) -> None:
    """Only what was sent can be edited: services fill a field that the source does not have, and earlier versions sent none."""
    merge.wrote({"title": "A", **wanted}, {"title": "A", **held})
    action, _fields, _conflicts = merge_pair(
        merge, {"title": "A", "content": source}, {"title": "A", "content": target}
    )
    assert action == expected


@pytest.mark.parametrize(
    ("decision", "expected"),
    [("source", ("patch", ["title"], [])), ("target", ("unchanged", [], [])), ("match", ("conflict", [], ["title"]))],
)
def test_the_decision_of_a_person(merge: Merge, decision: str, expected: object) -> None:
    merge.decide(decision, 7)
    assert merge_pair(merge, {"title": "A"}, {"title": "B"}) == expected


def test_records_without_a_match(merge: Merge) -> None:
    merge.add("source", 1, {"title": "new"}, "new")
    merge.add("source", 2, {"title": "unclear"}, "twice")
    merge.add("source", 3, {"title": "unwanted"}, "unwanted")
    merge.add("source", 4, {"title": "new all the same"}, "twice too")
    merge.decide("skip", source=3)
    merge.decide("create", source=4)
    for number, key in ((7, "twice"), (8, "twice"), (9, "twice too"), (10, "twice too")):
        merge.add("target", number, {}, key)
    assert merge.merged() == {
        1: ("create", None, [], [], None),
        2: ("conflict", None, [], [], "several_targets"),
        3: ("skipped", None, [], [], None),
        4: ("create", None, [], [], None),
    }


@given(st.text())
def test_a_digest_is_what_duckdb_says(text: str) -> None:
    body = json.dumps(text)
    assert duckdb.execute("SELECT md5_number(?)::VARCHAR", [body]).fetchall() == [(digest(body),)]
