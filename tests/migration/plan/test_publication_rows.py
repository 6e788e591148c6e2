"""The rows of a library of several steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.migration.model.comparable import STEP, ComparableLibrary
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.plan_table import PLAN
from pipelines.migration.plan.inputs import PlanInputs
from pipelines.migration.plan.match_store import MatchStore
from pipelines.migration.plan.publications import plan_publications
from pipelines.migration.plan.rows import Totals
from pipelines.service.clock import SystemClock
from pipelines.state.local import LocalState
from pipelines.store.parquet import table_writer
from tests.migration.plan.test_comparison import SHIFT, migrated, normalised
from tests.records.identifiers.test_real_library import library as real_records

RECORDS = 2 * STEP + 300
"""Records of the source: three steps."""


def with_files(record: dict[str, Any], number: int) -> dict[str, Any]:
    """A record with as many attached files as its number says."""
    files = [
        {"id": 10 * number + place, "file": {"metadata": {"size": number, "filename": f"{place}.pdf"}}}
        for place in range(number % 3)
    ]
    return {**record, "id": number, "assets": files}


@pytest.fixture
def libraries(tmp_path: Path) -> tuple[ComparableLibrary, ComparableLibrary]:
    """A library, and another one with a part of its records, some of them edited."""
    found = list(real_records())
    ours = [with_files(found[number % len(found)], number) for number in range(1, RECORDS + 1)]
    theirs = [
        {**migrated(one), "assets": one["assets"], "title": f"{one['title']}{' (edited)' * (one['id'] % 20 == 0)}"}
        for one in ours
        if one["id"] % 4
    ]
    return normalised(tmp_path / "ours", ours), normalised(tmp_path / "theirs", theirs)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """The writes of an earlier plan, which attached a file of some records."""
    journal = Journal(LocalState(tmp_path / "state.db"), "a", "b", SystemClock())
    for record in range(1, RECORDS, 50):
        number = journal.intend("earlier", "publications", record, WriteKind.ASSET, f"asset/{10 * record}/None")
        journal.done(number, target_id=record + SHIFT, asset_id=record)
    yield journal
    journal.close()


def planned(
    folder: Path, libraries: tuple[ComparableLibrary, ComparableLibrary], journal: Journal
) -> tuple[bytes, Totals]:
    """The file with the rows, and what they add up to."""
    folder.mkdir()
    inputs = PlanInputs(source=libraries[0], target=libraries[1], folder=folder, files=None, journal=journal)
    path = folder / "rows.parquet"
    with (
        MatchStore(folder / "others.sqlite", same_library=False) as store,
        table_writer(path, PLAN) as writer,
    ):
        totals = plan_publications(writer, inputs, store)
    assert [one.name for one in folder.iterdir()] == [path.name], "nothing else is left behind"
    return path.read_bytes(), totals


def test_the_rows_of_several_steps(
    tmp_path: Path, libraries: tuple[ComparableLibrary, ComparableLibrary], journal: Journal
) -> None:
    """A row for each record of the source, in its order; the same twice."""
    once, totals = planned(tmp_path / "once", libraries, journal)
    again, _totals = planned(tmp_path / "again", libraries, journal)
    assert again == once
    ids = pq.read_table(pa.BufferReader(once), columns=["source_id"]).column(0).to_pylist()
    assert ids == list(range(1, RECORDS + 1))
    assert sum(totals.actions.values()) == RECORDS
    assert {"create", "unchanged", "conflict"} <= totals.actions.keys()
    assert totals.files.there, "the journal and the target know files"
