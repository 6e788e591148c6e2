"""The staged tables of complete snapshots are Iceberg tables: each snapshot once, whatever fails, until prune removes it."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pipelines.backup.iceberg import open_tables, register_again, register_new, remove_from_tables
from pipelines.errors import ConfigurationError, StorageError
from pipelines.records.tables.description import Table
from pipelines.records.tables.field_ids import field_id
from pipelines.settings.config_file import load_settings
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.catalogue import open_catalogue
from pipelines.store.iceberg.tables import REGISTERED
from pipelines.store.maintenance.retention import prune
from pipelines.store.parquet import TableWriter, table_writer
from pipelines.store.snapshots.captures import Capture
from pipelines.store.stores import open_data
from tests.forks import kill_at, start
from tests.store.iceberg.conftest import Library, counts, queried, settings_in
from tests.store.s3 import S3
from tests.store.s3_proxy import s3_proxy

ROOT = Path(__file__).parents[3]
FIRST, SECOND, THIRD = "20261120T020000Z", "20261121T020000Z", "20261122T020000Z"
STAGED_OF_PUBLICATIONS = 5


def added(library: Library, tenant: str = "old") -> list[tuple[str, int]]:
    """What a backup registers: snapshots, and to how many tables each was added."""
    return [
        (registration.snapshot, len(registration.added))
        for registration in register_new(library.tables, library.data, tenant)
    ]


def commits(library: Library) -> int:
    """Commits to all tables that a new snapshot adds."""
    return sum(len(library.table(name).metadata.snapshots) for name in library.names)


def unstamped(self: Capture, table: Table, path: Path | None = None) -> AbstractContextManager[TableWriter]:
    """A writer as earlier versions had it."""
    return table_writer(path or self.table_path(table), table, self.key_of(table.name))


def prune_to_one(library: Library, tenant: str) -> None:
    data = library.data
    prune(
        data,
        ["old", "new"],
        RetentionSettings(keep_last=1),
        ZoneInfo("UTC"),
        tenant=tenant,
        dry_run=False,
        before_removal=partial(remove_from_tables, library.settings, data),
    )


@pytest.mark.long
def test_nights_of_two_libraries(each_kind: Library) -> None:
    """The same rows as `bookferry query` has. A snapshot is one commit to a table, and only the first time; so is its removal."""
    library = each_kind
    library.night(3)
    library.night(2, tenant="new")
    assert added(library) == added(library, "new") == [(FIRST, STAGED_OF_PUBLICATIONS)]
    library.night(4, day=1, tasks=[{"id": 1, "title": "Shelve"}])
    assert added(library) == [(SECOND, STAGED_OF_PUBLICATIONS + 1)]
    before = commits(library)
    assert before == 3 * STAGED_OF_PUBLICATIONS + 1
    assert added(library) == added(library, "new") == []
    [registration] = register_again(library.tables, library.data, "old")
    assert (registration.added, registration.tables["publications"], registration.rows) == ([], 4, 21)
    assert commits(library) == before
    for name in library.names:
        assert counts(library.table(name).scan().to_arrow()) == queried(library, name) != {}
    files = library.table().inspect.files().column("file_path").to_pylist()
    paths = [
        library.data.objects.address_of(f"{snapshot.key}/publications.parquet") for snapshot in library.data.snapshots()
    ]
    assert sorted(path.removeprefix("file://") for path in files) == sorted(paths)
    prune_to_one(library, "old")
    table, kept = library.table(), {("old", SECOND): 4, ("new", FIRST): 2}
    assert counts(table.scan().to_arrow()) == queried(library, "publications") == kept
    [last] = table.metadata.snapshots  # Iceberg's own history would need the files that are gone
    assert last.summary is not None
    assert (last.summary.operation.value, last.summary["deleted-data-files"]) == ("delete", "1")
    sequence = table.metadata.last_sequence_number
    prune_to_one(library, "old")
    assert library.table().metadata.last_sequence_number == sequence
    assert added(library) == []


def killed(config: Path, number: int, when: str) -> None:
    """Registers new snapshots, and kills its process before or after a commit."""
    commits = count(1)
    kill_at(SqlCatalog, "commit_table", when, lambda *_: next(commits) == number)
    settings = load_settings(config)
    data = open_data(settings)
    register_new(open_tables(settings, data), data, "old")


@pytest.mark.long
@pytest.mark.parametrize(("number", "when"), [(1, "before"), (2, "after"), (7, "before"), (10, "after")])
def test_a_killed_registration_is_completed(library: Library, number: int, when: str) -> None:
    """Kill -9 at a commit, of a column or of a file: the next night or `stage` adds what is missing, and nothing twice."""
    library.night(3)
    process = start(killed, library.settings.path, number, when)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(library.data.snapshots()) == 1
    library.night(4, day=1)
    registrations = register_new(library.tables, library.data, "old")
    assert registrations[-1].snapshot == SECOND
    [first] = register_again(library.tables, library.data, "old", FIRST)
    assert first.added == []
    for name in ("publications", "publication_identifiers", "publication_files"):
        assert counts(library.table(name).scan().to_arrow()) == queried(library, name)
    assert commits(library) == 2 * STAGED_OF_PUBLICATIONS


@pytest.mark.long
def test_a_prune_that_was_killed_is_completed(library: Library) -> None:
    """Before the files go, the tables let go of them. If the rest did not happen, the next prune does all of it; by hand, too."""
    for day in range(2):
        library.night(day=day)
    by_hand = library.night(day=2)
    register_new(library.tables, library.data, "old")
    library.data.objects.hide(by_hand.key)
    remove_from_tables(library.settings, library.data, {"old": [SECOND]})
    assert len(library.data.snapshots()) == 2
    assert added(library) == []  # the snapshot that is to go does not come back
    prune_to_one(library, "old")
    assert counts(library.table().scan().to_arrow()) == queried(library, "publications") == {("old", SECOND): 3}


def test_other_services_on_a_bad_day(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some answer 411 (Length Required) to an upload whose length is not in its headers, as radosgw 16 does; any may fail for a while."""
    with s3_proxy(s3) as proxy:
        for name, value in proxy.s3.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_REQUEST_CHECKSUM_CALCULATION", raising=False)
        library = Library(settings_in(tmp_path, f"s3://{proxy.s3.bucket()}/prefix"))
        snapshot, failing, proxy.trailers = library.night(3), count(), False
        proxy.fault = lambda _method, path: (503, "SlowDown") if "/iceberg/" in path and next(failing) < 3 else None
        library.tables.register(snapshot)
        assert counts(library.table().scan().to_arrow()) == {("old", FIRST): 3}
        assert next(failing) > 3, "more tries than the three that pyarrow makes by itself"


@pytest.mark.long
def test_two_machines_at_once(tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock in common, the catalogue decides: each snapshot is there once."""
    bucket = f"s3://{s3.bucket()}/x"
    monkeypatch.setenv("TEST_CATALOGUE", f"sqlite:///{tmp_path}/shared.db")
    machines = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        machines.append(Library(settings_in(tmp_path / name, bucket, 'uri_env = "TEST_CATALOGUE"')))
    for day in range(3):
        machines[0].night(day=day)
    machines[0].tables.register(machines[0].data.snapshots()[0])  # the tables are there
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda machine: register_again(machine.tables, machine.data, "old", history=True), machines))
    assert counts(machines[0].table().scan().to_arrow()) == queried(machines[0], "publications")
    assert commits(machines[0]) == 3 * STAGED_OF_PUBLICATIONS


@pytest.mark.long
def test_new_and_widened_columns(library: Library) -> None:
    """A column of another type is another column. The widest type has the name, whichever library came first."""
    library.night(0, tasks=[{"id": 1, "shelf": 5}])
    library.night(0, day=1, tasks=[{"id": 1, "shelf": "A 5", "new": True}])
    library.night(0, day=1, tenant="new", tasks=[{"id": 7, "shelf": 1.5}])
    for tenant in ("old", "new"):
        register_new(library.tables, library.data, tenant)
    names = ("tenant", "snapshot", "id", "shelf", "shelf_long", "shelf_double", "new")
    rows = (
        library.table("tasks")
        .scan(selected_fields=names)
        .to_arrow()
        .sort_by([("snapshot", "ascending"), ("tenant", "ascending")])
    )
    assert [tuple(row[name] for name in names) for row in rows.to_pylist()] == [
        ("old", FIRST, 1, None, 5, None, None),
        ("new", SECOND, 7, None, None, 1.5, None),
        ("old", SECOND, 1, "A 5", None, None, True),
    ]
    fields = {field.name: (field.field_id, field.doc) for field in library.table("tasks").schema().fields}
    assert fields["shelf_long"][0] == field_id("shelf", "long")
    assert fields["shelf"] == (
        field_id("shelf", "string"),
        "The service's own field shelf, observed since 2026-11-20.",
    )
    with open_catalogue(library.data) as database:
        assert database.execute("SELECT shelf FROM tasks_history ORDER BY snapshot, tenant").fetchall() == [
            ("5",),
            ("1.5",),
            ("A 5",),
        ]


@pytest.mark.long
def test_what_stays_out(library: Library) -> None:
    """Partial snapshots, raw records, tables about people, and files of tables without rows, which Iceberg does not have."""
    library.night(complete=False)
    library.night(0, day=1, users=[{"id": 1, "email": "ada@example.org"}])
    assert added(library) == []
    library.night(2, day=2, users=[{"id": 1}], hard_copies=[{"id": 1}], tasks=[])
    assert added(library) == [(THIRD, STAGED_OF_PUBLICATIONS + 1)]
    assert added(library) == [], "a table without rows has no file, and is not added again and again"
    assert "due_on" in library.table("tasks").schema().column_names
    tables = {*library.names}
    assert "publications" in tables <= {*REGISTERED}
    assert not tables & {"users", "user_roles", "raw_publications"}
    with pytest.raises(ConfigurationError, match=rf"'{FIRST}' is no complete snapshot of 'old'.*{SECOND}, {THIRD}"):
        register_again(library.tables, library.data, "old", FIRST)


def test_files_without_field_ids_are_refused(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an earlier format: by a sentence that says what to do."""
    with monkeypatch.context() as patch:
        patch.setattr(Capture, "writer", unstamped)
        library.night(3)
    with pytest.raises(StorageError, match=r"without field ids.*`bookferry stage TENANT --snapshot ID`"):
        register_new(library.tables, library.data, "old")
    library.night(4, day=1)
    [registration] = register_again(library.tables, library.data, "old", SECOND)
    assert (sorted(registration.added), registration.rows) == (sorted(library.names), 20)


@pytest.mark.long
def test_a_catalogue_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the place without the password, and the command that repeats it. Nothing is pruned."""
    monkeypatch.setenv("TEST_CATALOGUE", "postgresql://me:sesame-open@127.0.0.1:1/nothing")
    library = Library(settings_in(tmp_path, iceberg='uri_env = "TEST_CATALOGUE"'))
    for day in range(2):
        library.night(day=day)
    with pytest.raises(StorageError, match="bookferry stage old") as caught:
        register_new(library.tables, library.data, "old")
    assert "postgresql://127.0.0.1:1/nothing" in str(caught.value)
    assert "sesame-open" not in str(caught.value)
    with pytest.raises(StorageError, match="Removing snapshots from"):
        prune_to_one(library, "old")
    assert len(library.data.snapshots()) == 2


def test_without_pyiceberg(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    for name in [name for name in sys.modules if name.startswith(("pyiceberg", "pipelines.store.iceberg.tables"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(ConfigurationError, match=r'pip install "bookferry\[iceberg\]"'):
        _ = library.tables
