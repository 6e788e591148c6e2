"""`library.duckdb`: the data in any DuckDB client is complete, documented and up to date."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.errors import StorageError
from pipelines.records.tables.registry import STAGED, TABLES, raw_table
from pipelines.store.catalogue import open_catalogue, rebuild_catalogue
from pipelines.store.snapshots.manifest import encode_manifest
from pipelines.store.snapshots.snapshots import DataFolder, snapshot_key
from tests.store.snapshot_factory import (
    SNAPSHOT_ID,
    STARTED_AT,
    make_snapshot,
    make_snapshot_and_catalogue,
    publication_payloads,
    rewrite,
)
from tests.store.worker import Worker

FILLED = (*STAGED["publications"], raw_table("publications"))


@contextmanager
def open_plainly(data: DataFolder) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of another client."""
    with duckdb.connect(str(data.catalogue_path), read_only=True) as database:
        yield database


def query(data: DataFolder, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a query in the catalogue that Bookferry opens."""
    with open_catalogue(data) as database:
        return database.execute(sql).fetchall()


def rows_by_snapshot(data: DataFolder, view: str) -> list[tuple[Any, ...]]:
    return query(data, f"SELECT tenant, snapshot, count(*) FROM {view} GROUP BY ALL ORDER BY ALL")


@pytest.fixture(scope="module")
def two_tenants(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Two tenants: the newest snapshot of one is partial, the other has a single one. Partial snapshots come between complete ones."""
    data = DataFolder(tmp_path_factory.mktemp("two-tenants") / "library-data")
    for days, count, complete in ((0, 1, True), (1, 2, False), (2, 3, True), (3, 4, False)):
        make_snapshot_and_catalogue(
            data, publication_payloads(count), now=STARTED_AT + timedelta(days=days), complete=complete
        )
    make_snapshot_and_catalogue(data, publication_payloads(5), tenant="other")
    return data


class TestViews:
    """Each table has a view over the newest complete snapshot of each tenant, and `*_history` over all complete ones."""

    @pytest.mark.parametrize("view", [table.name for table in FILLED])
    def test_complete_snapshots_of_each_tenant(self, two_tenants: DataFolder, view: str) -> None:
        """A partial snapshot is never the newest (I4), and in no history."""
        newest = [("old", "20261122T020000Z", 3), ("other", SNAPSHOT_ID, 5)]
        assert rows_by_snapshot(two_tenants, view) == newest
        assert rows_by_snapshot(two_tenants, f"{view}_history") == [("old", SNAPSHOT_ID, 1), *newest]

    @pytest.mark.long
    def test_snapshots(self, two_tenants: DataFolder) -> None:
        """The view `snapshots` has the partial ones too, marked as partial. Its instants can be compared with those of records."""
        columns = "tenant, snapshot, complete, records, started_at, finished_at, api, path"
        rows = query(two_tenants, f"SELECT {columns} FROM snapshots ORDER BY ALL")
        assert [row[:4] for row in rows] == [
            ("old", SNAPSHOT_ID, True, 1),
            ("old", "20261121T020000Z", False, 2),
            ("old", "20261122T020000Z", True, 3),
            ("old", "20261123T020000Z", False, 4),
            ("other", SNAPSHOT_ID, True, 5),
        ]
        assert rows[0][4:7] == (STARTED_AT, STARTED_AT + timedelta(seconds=90), "v2")
        assert all(Path(row[-1], "manifest.json").is_file() for row in rows)
        for view in ("publications", "publications_history", "raw_publications_history"):
            sql = f"SELECT DISTINCT snapshot_at = started_at FROM {view} JOIN snapshots USING (tenant, snapshot)"
            assert query(two_tenants, sql) == [(True,)]

    def test_what_was_not_read_is_not_taken_for_empty(self, two_tenants: DataFolder) -> None:
        """Version 2 lists no hard copies: the table is empty, and its view and `tables_read` say why."""
        rows = query(
            two_tenants,
            "SELECT tenant, table_name, read, reason FROM tables_read WHERE snapshot = '20261122T020000Z' ORDER BY ALL",
        )
        assert ("old", "publications", True, None) in rows
        assert ("old", "hard_copies", False, "version 2 of the API documents no list of hard_copies") in rows
        assert len(rows) == len(TABLES)
        ((comment,),) = query(two_tenants, "SELECT comment FROM duckdb_views() WHERE view_name = 'hard_copies'")
        assert comment.endswith(" tables_read says which did not read it.")


@pytest.mark.long
class TestTimesPast:
    """As-of questions, and deletions, which follow from two consecutive complete snapshots only (I4)."""

    @pytest.mark.parametrize(
        ("instant", "expected"),
        [
            ("2026-11-20 02:01:29+00", 0),
            ("2026-11-20 02:01:30+00", 1),
            ("2026-11-21 23:00:00+00", 1),
            ("2026-11-22", 1),
            ("2026-11-22 03:01:30+01:00", 3),
            ("2030-01-01", 3),
        ],
    )
    def test_as_of(self, two_tenants: DataFolder, instant: str, expected: int) -> None:
        """The newest complete one that was finished by the instant: one that had only begun may have what people wrote later."""
        for table in ("publications", "raw_publications", "publication_authors"):
            for form in ("'{}'", "TIMESTAMPTZ '{}'"):
                sql = f"SELECT count(*), count(DISTINCT snapshot) FROM {table}_as_of('old', {form.format(instant)})"
                assert query(two_tenants, sql) == [(expected, min(expected, 1))]
        assert query(two_tenants, f"SELECT count(*) FROM users_as_of('old', '{instant}')") == [(0,)]

    def test_an_empty_library_is_what_it_was(self, data: DataFolder) -> None:
        """A complete snapshot without records counts."""
        make_snapshot_and_catalogue(data, publication_payloads(2))
        make_snapshot_and_catalogue(data, [], now=STARTED_AT + timedelta(days=1))
        assert query(data, "SELECT count(*) FROM publications_as_of('old', now())") == [(0,)]
        assert query(data, "SELECT id FROM publications_deleted ORDER BY id") == [(1,), (2,)]

    def test_deleted_between_two_complete_snapshots(self, data: DataFolder) -> None:
        """Partial snapshots and other tenants say nothing about deletions. A record that comes back is in the view all the same."""
        for day, count, complete in ((0, 3, True), (1, 1, False), (2, 2, True), (3, 3, True), (4, 1, False)):
            make_snapshot_and_catalogue(
                data, publication_payloads(count), now=STARTED_AT + timedelta(days=day), complete=complete
            )
        make_snapshot_and_catalogue(data, publication_payloads(1), tenant="other", now=STARTED_AT + timedelta(days=5))
        rows = query(data, "SELECT tenant, snapshot, missing_in, id, title FROM publications_deleted")
        assert rows == [("old", SNAPSHOT_ID, "20261122T020000Z", 3, "Title 3")]

    def test_a_snapshot_without_the_resource_deletes_nothing(self, data: DataFolder) -> None:
        """A snapshot of users alone does not delete the publications."""
        make_snapshot_and_catalogue(data, publication_payloads(3))
        users_snapshot = make_snapshot_and_catalogue(data, publication_payloads(0), now=STARTED_AT + timedelta(days=1))
        manifest = users_snapshot.manifest
        manifest.resources = {"users": manifest.resources["publications"]}
        manifest.tables = {}
        (users_snapshot.path / "manifest.json").write_bytes(encode_manifest(manifest))
        assert query(data, "SELECT count(*) FROM publications_deleted") == [(0,)]
        assert query(data, "SELECT count(*) FROM publications_as_of('old', now())") == [(3,)]


@pytest.mark.long
class TestTypes:
    """A view has the described types with and without rows."""

    def test_an_older_snapshot_lacks_a_newer_column(self, data: DataFolder) -> None:
        """Rows that were staged before a column existed have null in it, alone and beside newer ones."""
        old = make_snapshot_and_catalogue(data)
        rewrite(old, "publications", lambda table: table.drop_columns(["cover_id"]))
        rebuild_catalogue(data)
        assert query(data, "SELECT DISTINCT cover_id FROM publications") == [(None,)]
        make_snapshot_and_catalogue(data, now=STARTED_AT + timedelta(days=1))
        assert query(data, "SELECT snapshot, max(cover_id) FROM publications_history GROUP BY ALL ORDER BY ALL") == [
            (SNAPSHOT_ID, None),
            ("20261121T020000Z", "c"),
        ]

    def test_a_snapshot_that_another_run_removes_meanwhile(
        self, data: DataFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was listed, and is gone when its files are read, as beside the night of another library."""
        gone = make_snapshot_and_catalogue(data, tenant="new")
        make_snapshot_and_catalogue(data)
        listed = data.snapshots()
        listings = iter([listed])
        real = data.snapshots
        monkeypatch.setattr(data, "snapshots", lambda *tenant: next(listings, None) or real(*tenant))
        data.objects.hide(gone.key)
        rebuild_catalogue(data)
        assert rows_by_snapshot(data, "publications_history") == [("old", SNAPSHOT_ID, 3)]


class TestUpToDate:
    """A query sees all current snapshots and no others."""

    @pytest.mark.long
    def test_every_change_is_noticed(self, data: DataFolder) -> None:
        """A missing or damaged file, which holds no data of its own; a snapshot that was published, or pruned, or a folder that moved."""
        make_snapshot_and_catalogue(data)
        for content in (None, b"", b"not a database"):
            data.catalogue_path.unlink()
            if content is not None:
                data.catalogue_path.write_bytes(content)
            assert rows_by_snapshot(data, "publications") == [("old", SNAPSHOT_ID, 3)]
        before = data.catalogue_path.stat().st_ino
        rows_by_snapshot(data, "publications")
        assert data.catalogue_path.stat().st_ino == before, "a query changes nothing"
        newest = make_snapshot(data, publication_payloads(4), now=STARTED_AT + timedelta(days=1))
        assert rows_by_snapshot(data, "publications") == [("old", "20261121T020000Z", 4)]
        shutil.rmtree(newest.path)
        assert rows_by_snapshot(data, "publications_history") == [("old", SNAPSHOT_ID, 3)]
        moved = DataFolder(data.path.with_name("elsewhere"))
        data.path.rename(moved.path)
        assert rows_by_snapshot(moved, "publications") == [("old", SNAPSHOT_ID, 3)]
        with open_plainly(moved) as database:
            assert database.execute("SELECT count(*) FROM publications").fetchone() == (3,)

    def test_a_place_where_no_file_can_be(self, data: DataFolder) -> None:
        """One message, without DuckDB's stack."""
        make_snapshot_and_catalogue(data)
        data.catalogue_path.unlink()
        data.catalogue_path.mkdir()
        with pytest.raises(StorageError, match=r"library\.duckdb"):
            rows_by_snapshot(data, "publications")


@pytest.mark.long
class TestAtTheSameTime:
    """The new file is written beside the old one and swapped in."""

    def test_a_reader_keeps_what_it_sees(self, data: DataFolder) -> None:
        """An open connection keeps the old snapshots; a new one has the new ones."""
        make_snapshot_and_catalogue(data, publication_payloads(3))
        with open_plainly(data) as reader, Worker(data.path) as worker:
            assert reader.execute("SELECT count(*) FROM publications").fetchone() == (3,)
            assert worker(day=1, records=4)["exit"] == 0
            assert reader.execute("SELECT count(*) FROM publications").fetchone() == (3,)
        with open_plainly(data) as reader:
            assert reader.execute("SELECT count(*) FROM publications").fetchone() == (4,)

    def test_two_rebuild_at_once(self, data: DataFolder) -> None:
        """Two tenants may publish at the same moment: both finish, the file is complete, and nothing is left beside it."""
        make_snapshot_and_catalogue(data)
        with Worker(data.path) as first, Worker(data.path) as second, ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(worker, rebuild=4).result for worker in (first, second)]
            assert [answer()["exit"] for answer in answers] == [0, 0]
        assert rows_by_snapshot(data, "publications") == [("old", SNAPSHOT_ID, 3)]
        assert not list(data.path.glob(".library.*"))

    def test_what_a_killed_process_left_is_removed(self, data: DataFolder) -> None:
        """The next backup removes an unfinished file of any process."""
        data.prepare()
        for name in (".library.1.duckdb", f".library.{os.getpid()}.duckdb", ".library.1.duckdb.wal"):
            (data.path / name).write_bytes(b"half")
        make_snapshot_and_catalogue(data)
        assert not list(data.path.glob(".library.*"))


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "it's",
        "Bücherei №1 書庫",
        "br[a]ck",
        "st*r",
        "tenant=up",
        "100%",
    ],
)
def test_data_folders_of_any_name(tmp_path: Path, name: str) -> None:
    """A folder's name is not taken as SQL, as a pattern or as a Hive partition: the rows are those of this folder's tenant."""
    matching = {"br[a]ck": "brack", "st*r": "stxxr"}.get(name)
    if matching:  # what the name would match if it were a pattern
        make_snapshot_and_catalogue(DataFolder(tmp_path / matching / "data"), publication_payloads(9))
    data = DataFolder(tmp_path / name / "data")
    make_snapshot_and_catalogue(data, publication_payloads(2))
    assert rows_by_snapshot(data, "publications") == [("old", SNAPSHOT_ID, 2)]
    assert query(data, "SELECT DISTINCT type FROM publication_identifiers") == [("isbn",)]


@pytest.mark.long
def test_many_snapshots(data: DataFolder) -> None:
    """The nesting of the catalogue's statements does not grow with the number of snapshots."""
    first = make_snapshot_and_catalogue(data)
    for day in range(1, 1200):
        night = STARTED_AT + timedelta(days=day)
        copy = data.path / snapshot_key("old", night.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ"))
        copy.mkdir()
        manifest = (first.path / "manifest.json").read_text().replace(SNAPSHOT_ID, copy.name.partition("=")[2])
        (copy / "manifest.json").write_text(manifest.replace('"complete": true', '"complete": false'))
    rebuild_catalogue(data)
    assert query(data, "SELECT count(*), count(*) FILTER (complete) FROM snapshots") == [(1200, 1)]
    assert rows_by_snapshot(data, "publications") == [("old", SNAPSHOT_ID, 3)]
