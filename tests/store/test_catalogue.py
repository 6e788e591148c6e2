"""`library.duckdb`: what an analyst sees in any DuckDB client is proved complete, documented and up to date."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.backup import files, staging
from pipelines.errors import ConfigurationError, StorageError
from pipelines.records.tables.registry import RAW_TABLES, STAGED, TABLES, raw_table
from pipelines.records.tables.shared_columns import SNAPSHOT_COLUMNS
from pipelines.store import catalogue
from pipelines.store.catalogue import SNAPSHOTS, open_catalogue, rebuild_catalogue
from pipelines.store.snapshots.snapshots import DataFolder, sealed, snapshot_key
from tests.store.steps import ID, NIGHT, begin, make_snapshot, read, records
from tests.store.worker import Worker

VIEWS = tuple(table.impersonal for table in (*TABLES.values(), *RAW_TABLES))
FILLED = (*STAGED["publications"], raw_table("publications"))


@contextmanager
def plain(data: DataFolder) -> Iterator[duckdb.DuckDBPyConnection]:
    """As any client would open it."""
    with duckdb.connect(str(data.catalogue_path), read_only=True) as database:
        yield database


def ask(data: DataFolder, sql: str) -> list[tuple[Any, ...]]:
    """Rows, by the way that Bookferry itself takes."""
    with open_catalogue(data) as database:
        return database.execute(sql).fetchall()


def shown(data: DataFolder, view: str) -> list[tuple[Any, ...]]:
    return ask(data, f"SELECT tenant, snapshot, count(*) FROM {view} GROUP BY ALL ORDER BY ALL")


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Two tenants: one whose newest snapshot is partial, one with a single night. The partial ones come between others."""
    data = DataFolder(tmp_path_factory.mktemp("nights") / "library-data")
    for days, count, complete in ((0, 1, True), (1, 2, False), (2, 3, True), (3, 4, False)):
        make_snapshot(data, records(count), now=NIGHT + timedelta(days=days), complete=complete)
    make_snapshot(data, records(5), tenant="other")
    return data


class TestViews:
    """Wanted: views over the newest complete snapshot of each tenant, and `*_history` over all."""

    @pytest.mark.parametrize("view", [table.name for table in FILLED])
    def test_newest_complete_snapshot_of_each_tenant(self, nights: DataFolder, view: str) -> None:
        """Never a partial one, however new (I4)."""
        assert shown(nights, view) == [("old", "20261122T020000Z", 3), ("other", ID, 5)]

    @pytest.mark.parametrize("view", [table.name for table in FILLED])
    def test_history_of_all_complete_ones(self, nights: DataFolder, view: str) -> None:
        """Yesterday and last month as well as today; the partial ones are not in it."""
        expected = [("old", ID, 1), ("old", "20261122T020000Z", 3), ("other", ID, 5)]
        assert shown(nights, f"{view}_history") == expected

    def test_snapshots(self, nights: DataFolder) -> None:
        """The view `snapshots` has the partial ones too, as such."""
        rows = ask(
            nights,
            "SELECT tenant, snapshot, complete, records, requests, started_at, finished_at, path, api FROM snapshots ORDER BY ALL",
        )
        assert [(row[0], row[1], row[2], row[3], row[4]) for row in rows] == [
            ("old", ID, True, 1, 1),
            ("old", "20261121T020000Z", False, 2, 1),
            ("old", "20261122T020000Z", True, 3, 1),
            ("old", "20261123T020000Z", False, 4, 1),
            ("other", ID, True, 5, 1),
        ]
        assert rows[0][5:7] == (NIGHT, NIGHT + timedelta(seconds=90))
        assert all(Path(row[7], "manifest.json").is_file() for row in rows)
        assert {row[8] for row in rows} == {"v2"}

    def test_every_view_and_column_has_its_sentence(self, nights: DataFolder) -> None:
        """A client that shows comments shows the data dictionary."""
        with plain(nights) as database:
            views = dict(
                database.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall()
            )
            columns = database.execute(
                "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal ORDER BY table_name, column_index"
            ).fetchall()
        assert set(views) == {
            SNAPSHOTS.name,
            *(f"{table.name}{end}" for table in VIEWS for end in ("", "_history")),
            *(f"{tables[0].name}_deleted" for tables in STAGED.values()),
        }
        assert all(text for _view, _column, text in columns)
        assert (
            views["publications"]
            == f"{TABLES['publications'].comment} Newest complete snapshot of each tenant that holds it."
        )
        assert views["publications_history"] == f"{TABLES['publications'].comment} Every complete snapshot."
        for table in VIEWS:
            expected = [(column.name, column.comment) for column in (*SNAPSHOT_COLUMNS, *table.columns)]
            for end in ("", "_history"):
                assert [(name, text) for view, name, text in columns if view == f"{table.name}{end}"] == expected

    def test_one_old_snapshot_is_read_from_its_own_files_only(self, nights: DataFolder) -> None:
        """A year of nights does not slow the question about one of them down."""
        with open_catalogue(nights) as database:
            [(_, plan)] = database.execute(
                f"EXPLAIN SELECT count(id) FROM publications_history WHERE tenant = 'old' AND snapshot = '{ID}'"
            ).fetchall()
        assert "Scanning Files: 1/3" in plan

    def test_times_are_shown_in_utc(self, nights: DataFolder) -> None:
        """Whatever the machine's zone."""
        assert ask(nights, f"SELECT started_at::VARCHAR FROM snapshots WHERE tenant = 'old' AND snapshot = '{ID}'") == [
            ("2026-11-20 02:00:00+00",)
        ]


class TestTimesPast:
    """As-of questions, and deletions that are inferred from two consecutive complete snapshots only (trap A4)."""

    @pytest.mark.parametrize(
        ("instant", "expected"),
        [
            ("2026-11-20 01:59:59+00", 0),
            ("2026-11-20 02:00:00+00", 1),
            ("2026-11-21 23:00:00+00", 1),
            ("2026-11-22", 1),
            ("2026-11-22 03:00:00+01:00", 3),
            ("2030-01-01", 3),
        ],
    )
    def test_as_of(self, nights: DataFolder, instant: str, expected: int) -> None:
        """The newest complete snapshot that began by then; a text, a date or a time."""
        for table in ("publications", "raw_publications", "publication_authors"):
            for form in ("'{}'", "TIMESTAMPTZ '{}'"):
                sql = f"SELECT count(*), count(DISTINCT snapshot) FROM {table}_as_of('old', {form.format(instant)})"
                assert ask(nights, sql) == [(expected, min(expected, 1))]
        assert ask(nights, f"SELECT count(*) FROM users_as_of('old', '{instant}')") == [(0,)]

    def test_an_empty_library_is_what_it_was(self, data: DataFolder) -> None:
        """A complete snapshot without a record is an answer, too."""
        make_snapshot(data, records(2))
        make_snapshot(data, [], now=NIGHT + timedelta(days=1))
        assert ask(data, "SELECT count(*) FROM publications_as_of('old', now())") == [(0,)]
        assert ask(data, "SELECT id FROM publications_deleted ORDER BY id") == [(1,), (2,)]

    def test_deleted_between_two_complete_snapshots(self, data: DataFolder) -> None:
        """A partial night says nothing of what is gone; another tenant's neither; a record that comes back was gone all the same."""
        for day, count, complete in ((0, 3, True), (1, 1, False), (2, 2, True), (3, 3, True), (4, 1, False)):
            make_snapshot(data, records(count), now=NIGHT + timedelta(days=day), complete=complete)
        make_snapshot(data, records(1), tenant="other", now=NIGHT + timedelta(days=5))
        rows = ask(data, "SELECT tenant, snapshot, missing_in, id, title FROM publications_deleted")
        assert rows == [("old", ID, "20261122T020000Z", 3, "Title 3")]

    def test_a_snapshot_without_the_resource_deletes_nothing(self, data: DataFolder) -> None:
        """One of users alone does not say that the publications are gone."""
        make_snapshot(data, records(3))
        other = make_snapshot(data, records(0), now=NIGHT + timedelta(days=1))
        manifest = other.manifest
        manifest.resources = {"users": manifest.resources["publications"]}
        manifest.tables = {}
        (other.path / "manifest.json").write_bytes(sealed(manifest))
        assert ask(data, "SELECT count(*) FROM publications_deleted") == [(0,)]
        assert ask(data, "SELECT count(*) FROM publications_as_of('old', now())") == [(3,)]


class TestTypes:
    """A view has the described types whether or not it has rows."""

    @pytest.mark.parametrize("filled", [True, False])
    def test_types(self, data: DataFolder, filled: bool) -> None:
        """Nothing but a partial snapshot leaves the views empty, not without types."""
        make_snapshot(data, complete=filled)
        with plain(data) as database, duckdb.connect() as other:
            for table in VIEWS:
                described = pa.schema(
                    [*(pa.field(column.name, pa.string()) for column in SNAPSHOT_COLUMNS), *table.schema]
                )
                expected = [str(kind) for kind in other.from_arrow(described.empty_table()).types]
                for view in (table.name, f"{table.name}_history"):
                    assert [str(kind) for kind in database.table(view).types] == expected
                    assert bool(database.table(view).fetchall()) is (filled and table in FILLED)

    def test_a_complete_snapshot_without_records(self, data: DataFolder) -> None:
        """An empty library is a complete snapshot; its views are empty."""
        make_snapshot(data, [])
        assert ask(data, "SELECT count(*), max(id) FROM publications") == [(0, None)]
        assert ask(data, "SELECT complete, records FROM snapshots") == [(True, 0)]

    def test_an_older_snapshot_lacks_a_newer_column(self, data: DataFolder) -> None:
        """What was staged before a column existed shows it empty, alone and beside newer ones."""
        old = make_snapshot(data)
        file = old.path / "publications.parquet"
        pq.write_table(pq.read_table(file).drop_columns(["cover_id"]), file)
        rebuild_catalogue(data)
        assert ask(data, "SELECT DISTINCT cover_id FROM publications") == [(None,)]
        make_snapshot(data, now=NIGHT + timedelta(days=1))
        assert ask(data, "SELECT snapshot, max(cover_id) FROM publications_history GROUP BY ALL ORDER BY ALL") == [
            (ID, None),
            ("20261121T020000Z", "c"),
        ]


class TestUpToDate:
    """A query never shows what is not there, nor misses what is."""

    def test_nothing_to_ask(self, data: DataFolder) -> None:
        """Before the first backup the message says what to run."""
        with (
            pytest.raises(ConfigurationError, match=r"There is no snapshot in .* yet.*bookferry backup"),
            open_catalogue(data),
        ):
            pass

    def test_a_moved_folder_is_noticed(self, data: DataFolder) -> None:
        """The views name files by absolute path."""
        make_snapshot(data)
        moved = DataFolder(data.path.with_name("elsewhere"))
        data.path.rename(moved.path)
        assert shown(moved, "publications") == [("old", ID, 3)]
        with plain(moved) as database:
            assert database.execute("SELECT count(*) FROM publications").fetchone() == (3,)

    def test_a_pruned_snapshot_is_noticed(self, data: DataFolder) -> None:
        """Then the one before is the newest."""
        make_snapshot(data)
        newest = make_snapshot(data, now=NIGHT + timedelta(days=1))
        shutil.rmtree(newest.path)
        assert shown(data, "publications_history") == [("old", ID, 3)]

    def test_a_published_snapshot_is_noticed(self, data: DataFolder) -> None:
        """Also when the process died before it made the catalogue."""
        make_snapshot(data)
        capture = begin(data, now=NIGHT + timedelta(days=1))
        read(capture, records(4))
        staging.stage(capture, "publications")
        files.leave_files(capture)
        data.publish(capture, NIGHT + timedelta(days=1))
        assert shown(data, "publications") == [("old", "20261121T020000Z", 4)]

    def test_an_update_of_bookferry_is_noticed(self, data: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        """A catalogue that an older version made, without today's views, is made anew."""
        with monkeypatch.context() as older:
            older.setattr(catalogue, "STAGED", {})
            make_snapshot(data)
        assert shown(data, "publication_authors") == [("old", ID, 3)]

    @pytest.mark.parametrize("content", [b"", b"not a database", None])
    def test_a_missing_or_damaged_file_is_made_anew(self, data: DataFolder, content: bytes | None) -> None:
        """The file holds no data."""
        make_snapshot(data)
        data.catalogue_path.unlink()
        if content is not None:
            data.catalogue_path.write_bytes(content)
        assert shown(data, "publications") == [("old", ID, 3)]

    def test_it_is_not_made_anew_without_need(self, data: DataFolder) -> None:
        """A question changes nothing, so it can be asked of a folder that is read-only."""
        make_snapshot(data)
        before = data.catalogue_path.stat()
        shown(data, "publications")
        assert data.catalogue_path.stat() == before or data.catalogue_path.stat().st_ino == before.st_ino

    def test_a_place_where_no_file_can_be(self, data: DataFolder) -> None:
        """One message, no stack of DuckDB's."""
        make_snapshot(data)
        data.catalogue_path.unlink()
        data.catalogue_path.mkdir()
        with pytest.raises(StorageError, match=r"library\.duckdb"):
            shown(data, "publications")


class TestAtTheSameTime:
    """The file is made beside the old one and swapped in."""

    def test_a_reader_keeps_what_it_sees(self, data: DataFolder) -> None:
        """Whoever has the file open goes on reading the old snapshots; whoever opens it then sees the new ones."""
        make_snapshot(data, records(3))
        with plain(data) as reader, Worker(data.path) as others:
            assert reader.execute("SELECT count(*) FROM publications").fetchone() == (3,)
            assert others(night=1, records=4)["exit"] == 0
            assert reader.execute("SELECT count(*) FROM publications").fetchone() == (3,)
        with plain(data) as reader:
            assert reader.execute("SELECT count(*) FROM publications").fetchone() == (4,)

    def test_two_rebuild_at_once(self, data: DataFolder) -> None:
        """Two tenants may publish at the same moment: both finish, the file is whole, nothing is left beside it."""
        make_snapshot(data)
        with Worker(data.path) as one, Worker(data.path) as two, ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(worker, rebuild=4).result for worker in (one, two)]
            assert [answer()["exit"] for answer in answers] == [0, 0]
        assert shown(data, "publications") == [("old", ID, 3)]
        assert not list(data.path.glob(".library.*"))

    def test_what_a_killed_process_left_is_removed(self, data: DataFolder) -> None:
        """A half-made file, whoever made it, is gone after the next backup."""
        data.prepare()
        for name in (".library.1.duckdb", f".library.{os.getpid()}.duckdb", ".library.1.duckdb.wal"):
            (data.path / name).write_bytes(b"half")
        make_snapshot(data)
        assert not list(data.path.glob(".library.*"))


@pytest.mark.parametrize(
    "name",
    [
        "it's",
        'say "x"',
        "two words",
        "Bücherei №1 書庫",
        "br[a]ck",
        "st*r",
        "semi;colon",
        "tenant=up",
        "type=books",
        "100%",
    ],
)
def test_data_folders_of_any_name(tmp_path: Path, name: str) -> None:
    """A folder's name is neither SQL, nor a pattern, nor a Hive partition: the rows are those of this folder's tenant."""
    matching = {"br[a]ck": "brack", "st*r": "stxxr"}.get(name)
    if matching:  # what the name would match if it were a pattern
        make_snapshot(DataFolder(tmp_path / matching / "data"), records(9))
    data = DataFolder(tmp_path / name / "data")
    make_snapshot(data, records(2))
    assert shown(data, "publications") == [("old", ID, 2)]
    assert ask(data, "SELECT DISTINCT type FROM publication_identifiers") == [("isbn",)]


@pytest.mark.parametrize("name", ["qu?stion", "back\\slash"])
def test_data_folders_that_duckdb_cannot_open(tmp_path: Path, name: str) -> None:
    """DuckDB takes `?` and a backslash in an address for its own signs: told before a library is read, not after."""
    data = DataFolder(tmp_path / name)
    with pytest.raises(ConfigurationError, match=r"Name another folder as `data`"), data.lease("old"):
        pass
    assert not data.path.exists()


def test_many_snapshots(data: DataFolder) -> None:
    """Years of nights: the catalogue is made of statements whose nesting does not grow with them."""
    first = make_snapshot(data)
    for day in range(1, 1200):
        night = NIGHT + timedelta(days=day)
        copy = data.path / snapshot_key("old", night.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ"))
        copy.mkdir()
        manifest = (first.path / "manifest.json").read_text().replace(ID, copy.name.partition("=")[2])
        (copy / "manifest.json").write_text(manifest.replace('"complete": true', '"complete": false'))
    rebuild_catalogue(data)
    assert ask(data, "SELECT count(*), count(*) FILTER (complete) FROM snapshots") == [(1200, 1)]
    assert shown(data, "publications") == [("old", ID, 3)]


def test_instants_of_any_zone(data: DataFolder) -> None:
    """A snapshot's name is its instant in UTC, whatever the clock it was read from."""
    assert (
        make_snapshot(data, now=datetime.fromisoformat("2026-03-29T01:30:00+02:00")).manifest.snapshot
        == "20260328T233000Z"
    )
