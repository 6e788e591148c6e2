"""Two whole libraries compared: the real one in version 2 against what version 3 holds of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pytest

from pipelines.migration.model.comparable import ComparableLibrary
from pipelines.migration.normalise import normalise
from pipelines.migration.plan.comparison import DECISIONS, compare_libraries
from pipelines.records.forms import form_of
from pipelines.records.tables.registry import raw_table
from pipelines.store.parquet import table_writer
from tests.records.identifiers.test_real_library import library as real_records

SHIFT = 100_000
"""The difference between the ids of both libraries."""

Record = dict[str, Any]


def normalised(folder: Path, records: Iterable[Any]) -> ComparableLibrary:
    """The comparable form of some records."""
    folder.mkdir(parents=True)
    table = raw_table("publications")
    payloads = [msgspec.json.encode(record) for record in records]
    columns = [
        pa.array([None] * len(payloads), pa.int64()),
        pa.array([1] * len(payloads), table.schema.field("page").type),
        pa.array([payload.decode() for payload in payloads], pa.string()),
        pa.array([hashlib.sha256(payload).hexdigest() for payload in payloads], pa.string()),
    ]
    with table_writer(folder / "raw.parquet", table) as writer:
        writer.write(pa.RecordBatch.from_arrays(columns, schema=table.schema))
    return normalise(folder / "raw.parquet", folder / "side")


def migrated(record: Record, shift: int = SHIFT) -> Record:
    """A record of version 3 after its migration."""
    return {**form_of(record).fields, "id": record["id"] + shift}


@contextmanager
def comparison(
    folder: Path, ours: Iterable[Any], theirs: Iterable[Any], **options: Any
) -> Iterator[duckdb.DuckDBPyConnection]:
    source, target = normalised(folder / "a", ours), normalised(folder / "b", theirs)
    with compare_libraries(source, target, folder, **options) as database:
        yield database


def counts(database: duckdb.DuckDBPyConnection) -> dict[tuple[Any, ...], int]:
    rows = database.execute("SELECT action, matched_by, reason, count(*) FROM merged GROUP BY ALL").fetchall()
    return {tuple(row[:3]): row[3] for row in rows}


@pytest.fixture(scope="module")
def library() -> list[Record]:
    return [{"id": number, **record} for number, record in enumerate(real_records(), start=1)]


def test_an_empty_target_lacks_every_record(tmp_path: Path, library: list[Record]) -> None:
    with comparison(tmp_path, library, []) as database:
        assert counts(database) == {("create", None, None): len(library)}


def test_the_same_library_in_version_3_needs_nothing(tmp_path: Path, library: list[Record]) -> None:
    """Ids are the same, and each record of version 3 is what a migration would send."""
    with comparison(tmp_path, library, (migrated(one, 0) for one in library), same_library=True) as database:
        assert counts(database) == {("unchanged", "id", None): len(library)}


def test_another_library_with_all_records_needs_nothing(tmp_path: Path, library: list[Record]) -> None:
    """I8: no record is created again. Every match is right; an ambiguous record, or one without any evidence, is not guessed."""
    with comparison(tmp_path, library, map(migrated, library)) as database:
        found = database.execute("SELECT source_id, target_id, action FROM merged").fetchall()
    assert len(found) == len(library)
    assert {action for _one, other, action in found if other is not None} == {"unchanged"}
    assert all(other == one + SHIFT for one, other, _action in found if other is not None)
    assert {action for _one, other, action in found if other is None} == {"conflict"}
    assert len([None for _one, other, _action in found if other is not None]) > 0.95 * len(library)


def test_a_target_with_a_third_of_the_records_some_twice_and_some_edited(tmp_path: Path, library: list[Record]) -> None:
    """I8: no duplicate, edits are conflicts, every ambiguous match is listed."""
    of_doi = {
        entry["value"]: one
        for one in library
        for entry in form_of(one).fields.get("identifiers", ())
        if entry["type"] == "doi"
    }
    known = list({one["id"]: one for one in of_doi.values()}.values())[:300]
    twice, edited, poorer = known[:20], known[20:40], known[40:60]
    theirs = [migrated(one) for one in known]
    theirs += [migrated(one, 2 * SHIFT) for one in twice]
    by_id = {one["id"] - SHIFT: one for one in theirs if one["id"] < 2 * SHIFT}
    for one in edited:
        by_id[one["id"]]["title"] = f"{one['title']} (edited)"
    for one in poorer:
        del by_id[one["id"]]["identifiers"][1:], by_id[one["id"]]["authors"]
    with comparison(tmp_path, known, theirs) as database:
        columns = "source_id, action, fields, conflicts, reason, candidates"
        found = {row[0]: row[1:] for row in database.execute(f"SELECT {columns} FROM merged").fetchall()}
    assert {one["id"]: found[one["id"]] for one in twice} == {
        one["id"]: ("conflict", [], [], "several_targets", [one["id"] + SHIFT, one["id"] + 2 * SHIFT]) for one in twice
    }
    assert {found[one["id"]][:1] + tuple(map(tuple, found[one["id"]][1:3])) for one in edited} == {
        ("conflict", (), ("title",))
    }
    assert {found[one["id"]][0] for one in poorer} == {"patch"}
    assert {action for action, *_rest in found.values()} == {"conflict", "patch", "unchanged"}


def test_a_decision_settles_a_conflict(tmp_path: Path, library: list[Record]) -> None:
    ours = library[0]
    theirs = {**migrated(ours), "title": "edited"}
    decision = pa.RecordBatch.from_pylist(
        [{"source_id": ours["id"], "decision": "source", "target_id": theirs["id"]}], DECISIONS.schema
    )
    with comparison(tmp_path, [ours], [theirs], decisions=[decision]) as database:
        assert database.execute("SELECT action, fields FROM merged").fetchall() == [("patch", ["title"])]


def test_references_count_within_one_library_only(tmp_path: Path) -> None:
    """service.md#references: ids of contributors and organizations are valid in their own library."""
    ours = {"id": 1, "title": "A", "doi": "10.1000/182", "contributor": {"id": 5}}
    theirs = {"id": 1, "title": "A", "identifiers": [{"type": "doi", "value": "10.1000/182"}], "contributor": {"id": 9}}
    for same, action in ((False, "unchanged"), (True, "conflict")):
        with comparison(tmp_path / action, [ours], [theirs], same_library=same) as database:
            assert database.execute("SELECT action FROM merged").fetchall() == [(action,)]


def test_records_without_an_id_are_counted(tmp_path: Path) -> None:
    side = normalised(tmp_path / "a", [{"title": "without an id"}, "no record", {"id": 7}])
    assert (side.records, side.unfit) == (1, 2)
