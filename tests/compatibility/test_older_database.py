"""A database that an earlier Bookferry made goes on working: its nights stay in the views, and later ones are added.

`database-0.1.0.sql.xz` was made by `make_database.py` before nights were loaded as changes: each night is a partition of its own.
"""

from __future__ import annotations

import lzma
import shutil
from datetime import timedelta
from pathlib import Path

from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder
from tests.compatibility.make_database import NIGHTS, TENANTS, night
from tests.store.postgres.comparison import assert_same_views
from tests.store.postgres.conftest import Ask, address, ask, data, library, library_snapshot, postgres, server
from tests.store.snapshot_factory import STARTED_AT

__all__ = ["address", "ask", "data", "postgres", "server"]  # fixtures

ARCHIVE = Path(__file__).with_name("database-0.1.0.sql.xz")
INSTANTS = [STARTED_AT + timedelta(days=day, hours=1) for day in range(5)]
PARTITIONED = "SELECT count(*) FROM pg_class WHERE relkind = 'p'"


def test_a_database_with_a_partition_for_each_night(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Another library's nights stay as they are; its own are read beside the new ones, and go when they are pruned."""
    nights = {(tenant, day): night(data, day, tenant) for day in NIGHTS for tenant in TENANTS}
    ask(lzma.decompress(ARCHIVE.read_bytes()).decode())
    ask("SELECT set_config('search_path', 'library', false)")
    for tenant in TENANTS:
        ask(f"UPDATE {tenant}.snapshots SET path = replace(path, '/library/', '{data.path.parent}/')")
    assert_same_views(data, ask, *INSTANTS)
    assert postgres.loaded_snapshots("old") == ["20261120T020000Z", "20261121T020000Z"]

    assert postgres.load(data, library_snapshot(data, library(3, first=3), day=2)).written is None
    assert_same_views(data, ask, *INSTANTS)
    assert postgres.load(data, library_snapshot(data, library(3, first=4), day=3)).written is not None
    assert_same_views(data, ask, *INSTANTS)
    partitions = ask(PARTITIONED)

    shutil.rmtree(nights["old", 0].path)
    assert (
        postgres.load(data, library_snapshot(data, library(3, first=5), day=4)).written is None
    )  # it drops that night
    assert_same_views(data, ask, *INSTANTS)
    shutil.rmtree(nights["old", 1].path)
    postgres.load(data, library_snapshot(data, library(3, first=6), day=5))
    assert_same_views(data, ask, *INSTANTS)
    assert ask(PARTITIONED)[0][0] * 2 == partitions[0][0]
    for day in NIGHTS:  # its newest night is loaded once more
        postgres.load(data, nights["second", day])
    assert_same_views(data, ask, *INSTANTS)
    assert ask(PARTITIONED) == [(0,)]
