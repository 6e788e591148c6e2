"""A snapshot with files can be put back, and a drill finds out when it cannot (I12)."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow.parquet as pq

from pipelines.drill import drill
from pipelines.records.files import KEPT
from pipelines.settings.loading import load_settings
from pipelines.store.maintenance.drills import Drill, last_drill
from pipelines.store.snapshots.snapshots import Snapshot, blob_key
from pipelines.store.stores import open_data
from tests.migration.conftest import RECORDS
from tests.migration.moving import Desk

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)


def drilled(desk: Desk, snapshot: Snapshot) -> Drill:
    settings = load_settings(desk.config)
    return drill(settings, open_data(settings), snapshot, now=NOW)


def kept_files(snapshot: Snapshot) -> list[dict[str, object]]:
    rows = pq.read_table(snapshot.path / "publication_files.parquet").to_pylist()
    return [row for row in rows if row["status"] == KEPT]


def test_a_snapshot_is_put_back_and_read_again_to_the_last_byte(desk: Desk, snapshot: Snapshot) -> None:
    found = drilled(desk, snapshot)
    assert (found.ok, found.problems, found.records) == (True, [], RECORDS)
    assert found.files == len(kept_files(snapshot)) > 0
    data = open_data(load_settings(desk.config))
    assert last_drill(data, *snapshot.name.split("/")) == found
    assert not list((desk.config.parent / "library-data").glob(".drill-*"))


def test_a_blob_that_lost_a_bit_fails_it(desk: Desk, snapshot: Snapshot) -> None:
    blob = desk.config.parent / "library-data" / blob_key(str(kept_files(snapshot)[0]["sha256"]))
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.chmod(0o600)
    blob.write_bytes(content)
    found = drilled(desk, snapshot)
    assert not found.ok
    assert blob.name in " ".join(found.problems)
    assert found.problems_count >= 1
