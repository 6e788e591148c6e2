"""Field ids: what Iceberg finds the columns of a file by. They are the same in every file, for ever."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipelines.records.shapes.observation import ObservedColumn
from pipelines.records.tables import field_ids as module
from pipelines.records.tables.field_ids import FIELD_ID, field_id, field_ids, staged_schema
from pipelines.records.tables.observed_columns import with_columns
from pipelines.records.tables.registry import STAGED, TABLES


def ids_of(schema: pa.Schema) -> dict[str, int]:
    return {field.name: int((field.metadata or {})[FIELD_ID]) for field in schema}


def test_an_id_never_changes() -> None:
    """These numbers are in the files of every library. If this fails, the rule has changed, and Iceberg tables would read nulls."""
    assert field_id("id", "long") == 527822694
    assert field_id("title", "string") == 163248617
    assert ids_of(staged_schema(TABLES["publications"])).items() > {"tenant": 1, "snapshot": 2, "id": 527822694}.items()


def test_two_columns_never_share_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """The later one takes its next id. With five ids for four columns, the hash collides."""
    monkeypatch.setattr(module, "IDS", 5)
    columns = [(name, pa.string()) for name in "abcd"]
    assert len({field_id(name, "string") for name in "abcd"}) < len(columns)
    assert len({*field_ids(columns).values()}) == len(columns)
    assert field_ids(columns[:3]).items() < field_ids(columns).items()


def test_observed_columns_keep_their_ids() -> None:
    """A new column changes no other one's id."""
    table = STAGED["tasks"][0]
    first = [ObservedColumn("shelf", ("shelf",), "integer", "2026-11-22")]
    second = [*first, ObservedColumn("abc", ("abc",), "text", "2026-11-23")]
    before, after = (ids_of(staged_schema(with_columns(table, columns))) for columns in (first, second))
    assert before.items() < after.items()
