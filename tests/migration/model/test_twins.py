"""Records that the target has twice, because a request was sent again (I8): only those, and never records of somebody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.migration.model.comparable import Side, digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.resource_types import RESOURCE_TYPES
from pipelines.migration.model.target_reading import TargetListing
from pipelines.migration.model.twins import TwinFinder
from pipelines.service.clock import SystemClock
from tests.state_places import Place

MAPS = {"name": "Maps", "description": "Of the coast"}
IN_TARGET = {
    1: MAPS,
    2: MAPS,
    3: {**MAPS, "description": "Of the hills"},
    4: {"name": "Maps"},
    5: MAPS,
    6: MAPS,
}
"""Ours, its twin, two that differ, one that was there before, and one of another entry."""

Find = Callable[..., list[int]]


@pytest.fixture
def find(tmp_path: Path, place: Place) -> Find:
    """Returns the twins of record 1, whose entry in the journal has these digests."""

    def run(wanted: dict[str, str | None] | None, held: dict[str, str | None] | None) -> list[int]:
        raw = tmp_path / "raw.parquet"
        payloads = [msgspec.json.encode({"id": number, **record}) for number, record in IN_TARGET.items()]
        pq.write_table(pa.table({"payload": payloads}), raw)
        journal = Journal(place.state(clock := SystemClock()), "https://a", "https://b", clock)
        for source_id, target_id in ((10, 1), (11, 6)):
            number = journal.intend("plan", "collections", source_id, WriteKind.CREATE, wanted=wanted)
            journal.done(number, target_id=target_id, held=held)
        finder = TwinFinder(
            journal,
            Side(tmp_path, "publications"),
            {"collections": TargetListing(raw, type=RESOURCE_TYPES["collections"])},
            lambda _entry, ids: {5}.intersection(ids),
        )
        found = {entry.source_id: ids for entry, ids, _file in finder.find(journal.of_record("collections", 10))}
        journal.close()
        return found.get(10, [])

    return run


def digests(record: dict[str, str]) -> dict[str, str | None]:
    compared = RESOURCE_TYPES["collections"].compared(record)
    return {name: digest(compared.get(name)) for name in ("name", "description")}


def test_a_twin_equals_what_was_sent_or_what_the_service_made_of_it(find: Find) -> None:
    another = {"name": "Maps", "description": "As nobody has it"}
    assert find(digests(MAPS), None) == [2]
    assert find(digests(another), digests(MAPS)) == [2]
    assert find(digests(MAPS), digests(another)) == [2]
    assert find(digests(another), digests(another)) == []


@pytest.mark.long
def test_an_entry_without_values_has_no_twins(find: Find) -> None:
    """Otherwise every new record of the target would be one."""
    assert find({}, None) == find(None, {}) == find(None, None) == []
