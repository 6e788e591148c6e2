"""A database that an earlier Bookferry made goes on working: its nights stay in the views, and later ones are added.

`make_database.py` made both: `database-0.1.0.sql.xz` before nights were loaded as changes, so that each night is a partition of its own,
and `database-without-checksums.sql.xz` before a night wrote checksums beside the rows.
"""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.compatibility.make_database import TENANTS, night
from tests.store.postgres.comparison import assert_same_views
from tests.store.postgres.conftest import Ask, address, ask, data, library, library_snapshot, postgres, server
from tests.store.snapshot_factory import STARTED_AT

__all__ = ["address", "ask", "data", "postgres", "server"]  # fixtures

FOLDER = Path(__file__).parent
INSTANTS = [STARTED_AT + timedelta(days=day, hours=1) for day in range(8)]
"""An hour after each night. After a load those of this night and the one before are compared, at the end all."""

PARTITIONED = "SELECT count(*) FROM pg_class WHERE relkind = 'p'"


def restored(archive: str, nights_in_it: int, data: DataFolder, ask: Ask) -> Mapping[tuple[str, int], Snapshot]:
    """The nights that the database of an archive has, which is restored: library and day → snapshot."""
    nights = {(tenant, day): night(data, day, tenant) for day in range(nights_in_it) for tenant in TENANTS}
    ask(lzma.decompress((FOLDER / archive).read_bytes()).decode())
    ask("SELECT set_config('search_path', 'library', false)")
    for tenant in TENANTS:
        ask(f"UPDATE {tenant}.snapshots SET path = replace(path, '/library/', '{data.path.parent}/')")
    assert ask("SELECT count(DISTINCT snapshot) FROM publications_history") == [(nights_in_it,)]
    return nights


def test_a_database_with_a_partition_for_each_night(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Another library's nights stay as they are; its own are read beside the new ones, and go when they are pruned."""
    nights = restored("database-0.1.0.sql.xz", 2, data, ask)
    assert postgres.loaded_snapshots("old") == ["20261120T020000Z", "20261121T020000Z"]

    assert postgres.load(data, library_snapshot(data, library(3, first=3), day=2)).written is None
    assert_same_views(data, ask, *INSTANTS[1:3])
    assert postgres.load(data, library_snapshot(data, library(3, first=4), day=3)).written is not None
    assert_same_views(data, ask, *INSTANTS[2:4])
    partitions = ask(PARTITIONED)

    shutil.rmtree(nights["old", 0].path)
    assert (
        postgres.load(data, library_snapshot(data, library(3, first=5), day=4)).written is None
    )  # it drops that night
    assert_same_views(data, ask, *INSTANTS[3:5])
    shutil.rmtree(nights["old", 1].path)
    postgres.load(data, library_snapshot(data, library(3, first=6), day=5))
    assert_same_views(data, ask, *INSTANTS[4:6])
    assert ask(PARTITIONED)[0][0] * 2 == partitions[0][0]
    for day in range(2):  # its newest night is loaded once more
        postgres.load(data, nights["second", day])
    assert_same_views(data, ask, *INSTANTS)
    assert ask(PARTITIONED) == [(0,)]


def test_a_database_without_checksums(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Its nights stay as they are until they are pruned; the first night of a later version is loaded whole, the next as changes."""
    nights = restored("database-without-checksums.sql.xz", 3, data, ask)
    earlier = "SELECT 1 FROM pg_tables WHERE schemaname = '{}' AND tablename ~ '_2026112[012]t'"
    for tenant in TENANTS:
        assert ask(f"SELECT count(*) > 0 FROM {tenant}.users_20261121t020000z_past") == [(True,)]
        written = [
            postgres.load(data, library_snapshot(data, library(3, first=day), tenant=tenant, day=day)).written
            for day in (3, 4)
        ]
        assert [one is None for one in written] == [True, False]
        assert_same_views(data, ask, *INSTANTS[3:5])
        for day in range(3):
            assert ask(earlier.format(tenant))
            shutil.rmtree(nights[tenant, day].path)
            postgres.load(data, library_snapshot(data, library(3, first=day), tenant=tenant, day=day + 5))
            assert_same_views(data, ask, *INSTANTS[day + 4 : day + 6])
        assert not ask(earlier.format(tenant))
    assert_same_views(data, ask, *INSTANTS)
