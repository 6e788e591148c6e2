"""What goes wrong with a server, for real: the old data stays, the message is clear, and the next load works."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import BufferedReader
from pathlib import Path

import pytest

from pipelines.errors import ConfigurationError, StorageError, TemporaryError, TenantBusyError
from pipelines.store.objects.folders import Folder
from pipelines.store.postgres.loading import Database
from pipelines.store.postgres.postgres_errors import _REMEDIES, complaints
from pipelines.store.snapshots.snapshots import DataFolder
from tests.postgres import postgres_user
from tests.store.postgres.conftest import Ask, library, night
from tests.store.steps import NIGHT, make_snapshot, records


class Watched(Folder):
    """A folder in which something happens when the file of the authors is opened: the load is halfway then."""

    def __init__(self, folder: Folder, happens: Callable[[], None]) -> None:
        super().__init__(folder.path)
        self._happens = happens

    def open(self, key: str) -> BufferedReader:
        """As ever, but for that one."""
        if key.endswith("publication_authors.parquet"):
            self._happens()
        return super().open(key)


def watched(data: DataFolder, happens: Callable[[], None]) -> DataFolder:
    """The same data, with something that happens during a load."""
    return DataFolder(data.path, objects=Watched(Folder(data.path), happens))


def test_a_connection_that_is_ended_midway(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """I5, I9: what a broken load leaves behind is seen by nobody, and cleared by the next one."""
    first, second = night(data, library(1)), night(data, library(2), day=1)
    postgres.load(data, first)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bookferry'"
    with pytest.raises(
        TemporaryError, match=r"Loading old/.* into postgresql:///\S+ failed: .*untouched.*`bookferry stage old`"
    ):
        postgres.load(watched(data, lambda: ask(end) and None), second)
    assert ask("SELECT count(*) FROM publications") == ask("SELECT count(*) FROM publications_history") == [(1,)]
    assert ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'old_loading'") != [(0,)]
    postgres.load(data, second)
    assert ask("SELECT count(*) FROM publications") == [(2,)]
    assert ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'old_loading'") == [(0,)]


def test_the_server_s_own_vacuum_keeps_away_until_tables_are_shown(
    data: DataFolder, postgres: Database, ask: Ask
) -> None:
    """While it is at work on a table of many rows, which may take minutes, that can neither be renamed nor attached."""
    options = """SELECT DISTINCT reloptions FROM pg_class
                 WHERE relkind = 'r' AND relnamespace = '{}'::regnamespace AND relname <> 'snapshots'"""
    meanwhile = list[object]()
    postgres.load(watched(data, lambda: meanwhile.extend(ask(options.format("old_loading")))), night(data))
    assert meanwhile == [(["autovacuum_enabled=off"],)]
    assert ask(options.format("old")) == [(None,)]


@pytest.fixture
def small_disk(ask: Ask) -> Iterator[None]:
    """New tables of the database go to a disk of eight megabytes, where this user may make one."""
    mount = Path(tempfile.mkdtemp(prefix="bookferry-small-"))
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0777", "tmpfs", str(mount)], capture_output=True, check=False
    )
    if made.returncode or (owner := postgres_user()) is None:
        mount.rmdir()
        pytest.skip("only root can make a small disk")
    try:
        (mount / "space").mkdir(mode=0o700)
        shutil.chown(mount / "space", owner)
        ask(f"CREATE TABLESPACE small LOCATION '{mount}/space'")
        (name,) = ask("SELECT current_database()")[0]
        ask(f"ALTER DATABASE {name} SET default_tablespace = small")
        yield
        ask(f"ALTER DATABASE {name} RESET default_tablespace")
        ask("DROP SCHEMA old CASCADE; DROP SCHEMA IF EXISTS library CASCADE")
        ask("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)
        mount.rmdir()


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """I5: the old tables stay, what was loaded goes at once, so that the server has its room back."""
    first = night(data, library(1))
    many = make_snapshot(data, records(5000, letters=2500), now=NIGHT + timedelta(days=1))
    postgres.load(data, first)
    with pytest.raises(
        StorageError, match=r"No space left on device \(SQLSTATE 53100\).*The disk of the Postgres server is full"
    ):
        postgres.load(data, many)
    assert ask("SELECT count(*) FROM publications") == [(1,)]
    assert ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'old_loading'") == [(0,)]
    assert postgres.load(data, night(data, library(2), day=2)).tables["publications"] == 2


def test_two_loads_of_one_library_at_once(data: DataFolder, postgres: Database) -> None:
    """The second is told, at once; another library's load goes on beside."""
    one, other = night(data), night(data, tenant="other")
    happened: list[int] = []

    def beside() -> None:
        with pytest.raises(TenantBusyError, match="Another run is loading 'old'"):
            postgres.load(data, one)
        happened.append(postgres.load(data, other).rows)

    postgres.load(watched(data, beside), one)
    assert len(happened) == 1


def test_a_damaged_file_is_told_as_such(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Not in the words of the driver."""
    one = night(data)
    file = one.path / "publications.parquet"
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    with pytest.raises(StorageError, match=r"Cannot write to or read from .*publications\.parquet"):
        postgres.load(data, one)
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
        Database(address).load(data, night(data))
    assert "sesame" not in f"{caught.value!r}{caught.value.__cause__!r}"
    assert "postgres_env" in str(caught.value)


def test_a_database_that_is_not_there(server: str, data: DataFolder) -> None:
    """The address is wrong: a person must mend it."""
    with pytest.raises(ConfigurationError, match=r'does not let us in: .*database "nobody" does not exist'):
        Database(server.replace("/postgres?", "/nobody?")).load(data, night(data))


def test_the_server_s_own_words_and_what_to_do(ask: Ask) -> None:
    """Each state that the server really raises is told with its remedy: a full disk, a limit, a standby, a lost connection."""
    for state in (state for state in _REMEDIES if len(state) == 5):
        raising = (
            f"DO $$ BEGIN RAISE EXCEPTION 'said so' USING ERRCODE = '{state}', DETAIL = 'somebody''s data'; END $$"
        )
        kind, remedy = _REMEDIES[state]
        with pytest.raises(kind) as caught, complaints("Loading x into", "y", "", "bookferry stage old"):
            ask(raising)
        assert str(caught.value).startswith(f"Loading x into y failed: said so (SQLSTATE {state}). What the database")
        assert str(caught.value).endswith(f"{remedy} `bookferry stage old`.")
