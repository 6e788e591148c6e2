"""What is to be done with a record, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.migration.model.comparable import Field, digest
from pipelines.migration.plan.matching import match
from pipelines.migration.plan.three_way_merge import merge_three_ways

FIELDS = (Field("title"), Field("abstract"), Field("categories", is_set=True))
Record = dict[str, Any]


class Merge:
    """One source record, 1, and one target record, 7, that are known to be one by their identifier."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        columns = ", ".join(f"{field.name} VARCHAR" for field in FIELDS)
        for side in ("source", "target"):
            self.database.execute(f"CREATE TABLE {side} (id BIGINT, fingerprint VARCHAR, content VARCHAR, {columns})")
            self.database.execute(f"CREATE TABLE {side}_keys (id BIGINT, type VARCHAR, value VARCHAR)")
        self.database.execute("CREATE TABLE written (source_id BIGINT, target_id BIGINT, wanted JSON, held JSON)")
        self.database.execute("CREATE TABLE decisions (source_id BIGINT, decision VARCHAR, target_id BIGINT)")
        self.database.execute("CREATE TABLE same_library AS SELECT false AS yes")

    def add(self, side: str, number: int, record: Record, key: str | None = "a") -> None:
        """A record of one side."""
        row = [number, None, f"{side} {number}", *(texts(record)[field.name] for field in FIELDS)]
        self.database.execute(f"INSERT INTO {side} VALUES (?, ?, ?, ?, ?, ?)", row)
        if key is not None:
            self.database.execute(f"INSERT INTO {side}_keys VALUES (?, 'doi', ?)", [number, key])

    def wrote(self, wanted: Record, held: Record, source: int = 1, target: int = 7) -> None:
        """An earlier plan wrote this, and the service then held that."""
        both = [json.dumps({name: digest(text) for name, text in texts(one).items()}) for one in (wanted, held)]
        self.database.execute("INSERT INTO written VALUES (?, ?, ?, ?)", [source, target, *both])

    def decide(self, decision: str, target: int | None = None, source: int = 1) -> None:
        """A person decided."""
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


def one(merge: Merge, ours: Record, theirs: Record) -> tuple[str, list[str], list[str]]:
    merge.add("source", 1, ours)
    merge.add("target", 7, theirs)
    action, target, fields, conflicts, _reason = merge.merged()[1]
    assert target == 7
    return action, fields, conflicts


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
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
def test_a_record_that_nobody_of_us_wrote(merge: Merge, ours: Record, theirs: Record, expected: object) -> None:
    assert one(merge, ours, theirs) == expected


@pytest.mark.parametrize(
    ("wanted", "held", "ours", "theirs", "expected"),
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
    merge: Merge, wanted: str | None, held: str | None, ours: str | None, theirs: str | None, expected: object
) -> None:
    merge.wrote({"title": wanted}, {"title": held})
    assert one(merge, {"title": ours}, {"title": theirs}) == expected


@pytest.mark.parametrize(
    ("decision", "expected"),
    [("source", ("patch", ["title"], [])), ("target", ("unchanged", [], [])), ("match", ("conflict", [], ["title"]))],
)
def test_what_a_person_decided(merge: Merge, decision: str, expected: object) -> None:
    merge.decide(decision, 7)
    assert one(merge, {"title": "A"}, {"title": "B"}) == expected


def test_the_others(merge: Merge) -> None:
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
