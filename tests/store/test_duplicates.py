"""Rows of a raw file that a walk over a moving collection read twice, or that only an earlier walk read (I4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from pipelines.records.raw import RawRecords
from pipelines.records.tables.registry import raw_table
from pipelines.store.duplicates import add_missing, drop_duplicates
from pipelines.store.parquet import table_writer

Row = tuple[int | str, str]
"""Id and title of a record."""


def raw_file(path: Path, *groups: Sequence[Row]) -> Path:
    """A raw file with one row group for each group of records; each group is a page."""
    table = raw_table("publications")
    with table_writer(path, table) as writer:
        for page, group in enumerate(groups, 1):
            records = RawRecords()
            payloads = [
                msgspec.Raw(json.dumps({"id": record_id, "title": title}).encode()) for record_id, title in group
            ]
            records.add(
                payloads, [record_id if isinstance(record_id, int) else None for record_id, _title in group], page
            )
            writer.write(records.batch(table.schema))
    return path


def rows_of(path: Path) -> list[Row]:
    """The records of a raw file, in its order."""
    payloads = map(json.loads, pq.read_table(path, columns=["payload"]).column("payload").to_pylist())
    return [(record["id"], record["title"]) for record in payloads]


FIRST = [(1, "a"), (2, "a"), (3, "a")]


class TestDuplicates:
    """A record on two pages counts as its later page has it."""

    def test_the_last_row_of_a_record_stays_in_its_place(self, tmp_path: Path) -> None:
        """Also where its rows are in different row groups."""
        path = raw_file(tmp_path / "raw.parquet", FIRST, [(4, "b"), (2, "b"), (5, "b")], [(6, "c"), (4, "c"), (1, "c")])
        count = drop_duplicates(path, "publications", None, text_ids=False)
        assert count == 3
        assert rows_of(path) == [(3, "a"), (2, "b"), (5, "b"), (6, "c"), (4, "c"), (1, "c")]


class TestEarlierWalks:
    """Records that only an earlier walk read are added at the end, each once."""

    @pytest.mark.parametrize("text_ids", [False, True])
    def test_missing_records_are_added_in_their_newest_form(self, tmp_path: Path, *, text_ids: bool) -> None:
        """From any row group of the earlier file; nothing of the newer file is lost or changed."""
        path = raw_file(tmp_path / "raw.parquet", FIRST, [(4, "a")])
        earlier = raw_file(tmp_path / "earlier.parquet", [(1, "old"), (7, "old")], [(3, "old"), (8, "x"), (7, "y")])
        assert add_missing(path, earlier, "publications", None, text_ids=text_ids) == 2
        assert rows_of(path) == [*FIRST, (4, "a"), (8, "x"), (7, "y")]

    def test_records_without_an_id_are_the_same_where_their_bytes_are(self, tmp_path: Path) -> None:
        """Else they are different records."""
        path = raw_file(tmp_path / "raw.parquet", [("one", "a")])
        earlier = raw_file(tmp_path / "earlier.parquet", [("one", "a"), ("one", "b")])
        assert add_missing(path, earlier, "publications", None, text_ids=False) == 1
        assert rows_of(path) == [("one", "a"), ("one", "b")]
