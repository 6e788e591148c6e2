"""Real failures of a server: the old data stays, the message is clear, and the next load works."""

from __future__ import annotations

from collections.abc import Callable
from io import BufferedReader

import pytest

from pipelines.errors import ConfigurationError, StorageError, TemporaryError, TenantBusyError
from pipelines.store.objects.folders import Folder
from pipelines.store.postgres.loading import Database
from pipelines.store.postgres.postgres_errors import statement_errors
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.conftest import Ask, library, library_snapshot


class FolderWithHook(Folder):
    """A folder that calls `hook` when the fifth file is opened: three are read beside each other, so that two tables are there."""

    def __init__(self, folder: Folder, hook: Callable[[], None]) -> None:
        super().__init__(folder.path)
        self._happens = hook

    def open(self, key: str) -> BufferedReader:
        """Open a file; the hook comes first for that one."""
        if key.endswith("publication_files.parquet"):
            self._happens()
        return super().open(key)


def with_hook(data: DataFolder, hook: Callable[[], None]) -> DataFolder:
    """The same data, with a hook during a load."""
    return DataFolder(data.path, objects=FolderWithHook(Folder(data.path), hook))


@pytest.mark.long
def test_a_connection_that_is_ended_midway(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """I5, I9: no reader sees the leftovers of a broken load, and the next load clears them."""
    first, second = library_snapshot(data, library(1)), library_snapshot(data, library(2), day=1)
    postgres.load(data, first)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bookferry'"
    with pytest.raises(
        TemporaryError, match=r"Loading old/.* into postgresql:///\S+ failed: .*untouched.*`bookferry stage old`"
    ):
        postgres.load(with_hook(data, lambda: ask(end) and None), second)
    assert ask("SELECT count(*) FROM publications") == ask("SELECT count(*) FROM publications_history") == [(1,)]
    assert ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'old_loading'") != [(0,)]
    postgres.load(data, second)
    assert ask("SELECT count(*) FROM publications") == [(2,)]
    assert ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'old_loading'") == [(0,)]


def test_tables_of_another_format_are_refused(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """One sentence says what to do; nothing is changed."""
    postgres.load(data, library_snapshot(data))
    ask("ALTER TABLE old.loaded_tables ADD COLUMN load text")
    with pytest.raises(
        StorageError, match=r"format of an earlier Bookferry.*\(DROP SCHEMA \"old\" CASCADE.*stage --history"
    ):
        postgres.load(data, library_snapshot(data, library(4), day=1))
    assert ask("SELECT count(*) FROM publications_history") == [(3,)]


FULL_DISK = """
CREATE FUNCTION full_disk() RETURNS event_trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END $$;
CREATE EVENT TRIGGER full_disk ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION full_disk()"""
"""A server that has no space for the index of a table that was copied."""


def test_a_full_disk(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """I5: the old tables stay, and the new ones are dropped at once, so that the server has its space back."""
    postgres.load(data, library_snapshot(data, library(1)))
    second = library_snapshot(data, library(2), day=1)
    ask(FULL_DISK)
    with pytest.raises(
        StorageError, match=r"No space left on device \(SQLSTATE 53100\).*The disk of the Postgres server is full"
    ):
        postgres.load(data, second)
    assert ask("SELECT count(*) FROM publications") == [(1,)]
    assert ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'old_loading'") == [(0,)]
    ask("DROP EVENT TRIGGER full_disk")
    assert postgres.load(data, second).tables["publications"] == 2


def test_two_loads_of_one_library_at_once(data: DataFolder, postgres: Database) -> None:
    """The second load fails at once; a load of another library continues."""
    snapshot, other_snapshot = library_snapshot(data), library_snapshot(data, tenant="other")
    happened: list[int] = []

    def beside() -> None:
        with pytest.raises(TenantBusyError, match="Another run is loading 'old'"):
            postgres.load(data, snapshot)
        happened.append(postgres.load(data, other_snapshot).rows)

    postgres.load(with_hook(data, beside), snapshot)
    assert len(happened) == 1


def test_a_damaged_file_is_reported(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """The message is ours and not the driver's."""
    snapshot = library_snapshot(data)
    file = snapshot.path / "publications.parquet"
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    with pytest.raises(StorageError, match=r"publications\.parquet was changed"):
        postgres.load(data, snapshot)
    assert ask("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'old_load%%'") == [(0,)]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("postgresql://me:sesame-open@127.0.0.1:1/nothing", TemporaryError),
        ("postgresql://me:sesame-open@no-such-host.invalid/nothing", TemporaryError),
        ("postgresql+psycopg://me:sesame-open@127.0.0.1:notaport/x", ConfigurationError),
    ],
)
def test_a_server_that_cannot_be_reached(data: DataFolder, address: str, kind: type[Exception]) -> None:
    """The password is in no message (I10)."""
    with pytest.raises(kind) as caught:
        Database(address).load(data, library_snapshot(data))
    assert "sesame" not in f"{caught.value!r}{caught.value.__cause__!r}"
    assert "postgres_env" in str(caught.value)


def test_a_database_that_is_not_there(state_server: str, data: DataFolder) -> None:
    """A wrong address is a configuration error."""
    with pytest.raises(ConfigurationError, match=r'refuses the connection: .*database "nobody" does not exist'):
        Database(state_server.replace("/postgres?", "/nobody?")).load(data, library_snapshot(data))


def test_a_value_that_a_driver_does_not_take_is_no_lost_connection(ask: Ask) -> None:
    """The server never saw it: it would be refused every night."""
    with pytest.raises(StorageError, match="The cause is unknown"), statement_errors("Loading", "y", "", "again"):
        ask("SELECT %s::text", "\0")
