"""One contract for sign-ins in either state (I3): a file of this user, a Postgres database."""

from __future__ import annotations

import os
import sqlite3
import stat
from dataclasses import replace
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest

from pipelines.errors import ConfigurationError, SignInError, StorageError
from pipelines.service.clock import SystemClock
from pipelines.service.redaction import MASK, redact
from pipelines.service.sign_in.stored_sign_in import Grant, Registration, StoredSignIn
from pipelines.service.sign_in.token_store import SIGN_INS_FILE, LeaseTakenError, TokenStore, open_tokens
from pipelines.settings.config_file import load_settings
from pipelines.state import leases
from pipelines.state.local import LocalState
from pipelines.state.postgres import PostgresState
from tests.forks import CONTEXT, start
from tests.service.manual_clock import ManualClock
from tests.service.sign_in.home import SECONDS
from tests.variables import with_variables

pytestmark = pytest.mark.usefixtures("quick_leases")

BASE_URL = "https://library.example.org"
CLOCK = SystemClock()


def connection(number: int = 0) -> StoredSignIn:
    """A complete stored sign-in; another `number` makes another one."""
    registration = Registration("client", "a-client-secret", "none", ("http://127.0.0.1:20001/callback",), ("a",))
    grant = Grant("client", f"access-{number}", f"refresh-{number}", ("library:read",), 3600.0, 10.5, 9.0, number)
    return StoredSignIn(BASE_URL, "new", registration, grant, refreshing_since=12.5)


class Open(Protocol):
    """Opens the store of a tenant, in any process."""

    def __call__(self, tenant: str = "new", base_url: str = BASE_URL) -> TokenStore:
        """Open the store."""
        ...


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.long)])
def store_for(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Both kinds, one after the other."""
    place = tmp_path / "sign-ins" / SIGN_INS_FILE
    if request.param == "postgres":
        place = request.getfixturevalue("postgres_database")
    return partial(open_store, place)


def open_store(place: Path | str, tenant: str = "new", base_url: str = BASE_URL) -> TokenStore:
    """Open the store of a tenant, in a file or in the database of an address."""
    state = PostgresState(place) if isinstance(place, str) else LocalState(place, private=True)
    return TokenStore(state, tenant, base_url)


def write(store: TokenStore, stored: StoredSignIn) -> None:
    """Store it."""
    with store.leased(CLOCK) as leased:
        leased.write(stored)


def hold(store_for: Open, pipe: Connection) -> None:
    leases.BEAT_SECONDS = 0.2
    with store_for().leased(CLOCK):
        pipe.send("held")
        pipe.recv()


def write_for_ever(store_for: Open) -> None:
    store = store_for()
    for number in count(1):
        write(store, connection(number))


def test_connections_do_not_meet(store_for: Open) -> None:
    """I2: tokens of one address go to no other address, even if a tenant's base_url was changed in the file."""
    write(store_for(), connection())
    assert store_for("old").read() == StoredSignIn(BASE_URL, "old")
    assert store_for("new", "https://elsewhere.example").read() == StoredSignIn("https://elsewhere.example", "new")


@pytest.mark.long
def test_the_lease_is_for_one_process_and_dies_with_it(store_for: Open) -> None:
    """Never a stale lease: after kill -9, its silence ends it."""
    store = store_for()
    pipe, holders = CONTEXT.Pipe()
    holder = start(hold, store_for, holders)
    assert pipe.recv() == "held"
    with (
        pytest.raises(LeaseTakenError, match="Another process has been renewing"),
        store.leased(CLOCK, seconds=0.1),
    ):
        pass
    assert store.read() == StoredSignIn(BASE_URL, "new")  # who only looks does not wait
    holder.kill()
    with store.leased(CLOCK, seconds=SECONDS) as leased:
        leased.write(connection())
    assert store.read() == connection()


@pytest.mark.long
def test_a_process_killed_while_it_writes_leaves_the_old_or_the_new(store_for: Open) -> None:
    """I3, I5: never half of it."""
    write(store_for(), connection(0))
    refreshes = set()
    for _ in range(2):
        writer = start(write_for_ever, store_for)
        while store_for().read() == connection(0):
            pass
        writer.kill()
        writer.join()
        sign_in = store_for().read()
        assert sign_in.grant is not None
        assert sign_in == connection(sign_in.grant.refreshes)
        refreshes.add(sign_in.grant.refreshes)
        write(store_for(), connection(0))
    assert 0 not in refreshes


def test_secrets_that_were_read_from_a_store_are_in_no_message(store_for: Open) -> None:
    """I10: a process that did not sign in itself knows them from the store alone."""
    store = store_for()
    write(store, connection())
    secrets = ("access-0", "refresh-0", "a-client-secret")
    assert redact(" ".join(secrets)) == " ".join(secrets)
    store.read()
    assert redact(" ".join(secrets)) == " ".join([MASK] * 3)


def file_store(folder: Path) -> TokenStore:
    """The sign-in of this user in a folder."""
    return TokenStore(LocalState(folder / SIGN_INS_FILE, private=True), "new", BASE_URL)


def test_only_the_user_can_read_the_file(tmp_path: Path) -> None:
    """File mode 0600 (folder 0700), whatever the umask and the group of the data, and also if the file was wider before."""
    umask = os.umask(0)
    try:
        store = file_store(tmp_path / "sign-ins")
        write(store, connection())
        Path(store.place).chmod(0o644)
        with store.leased(CLOCK) as leased:
            leased.write(connection(1))
            files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "sign-ins").iterdir()}
    finally:
        os.umask(umask)
    assert files == {f"{SIGN_INS_FILE}{ending}": 0o600 for ending in ("", "-wal", "-shm")}
    assert stat.S_IMODE(Path(store.place).parent.stat().st_mode) == 0o700


def test_who_only_reads_makes_no_file(tmp_path: Path) -> None:
    assert file_store(tmp_path / "sign-ins").read() == StoredSignIn(BASE_URL, "new")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"base_url": 1}', '{"base_url": "x", "tenant": "new", "version": 9}']
)
def test_a_damaged_sign_in_names_the_command(tmp_path: Path, content: str) -> None:
    """Exit 4: only a new sign-in helps."""
    store = file_store(tmp_path)
    write(store, connection())
    with sqlite3.connect(store.place) as db:
        db.execute("UPDATE sign_ins SET document = ?", (content,))
    with pytest.raises(SignInError, match=r"cannot be read.*Run `bookferry login new`, which replaces it"):
        store.read()


def test_an_unwritable_folder_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="Does its folder exist"), file_store(tmp_path / "file").leased(CLOCK):
        pass


def test_a_session_that_breaks_loses_no_answer(postgres_database: str) -> None:
    """I3: the database restarts in the middle of a refresh; the response is stored, but never over something newer."""
    store = TokenStore(PostgresState(postgres_database), "new", BASE_URL)
    write(store, connection(0))
    with psycopg.connect(postgres_database, autocommit=True) as administrator:
        with store.leased(CLOCK) as leased:
            assert leased.read() == connection(0)
            administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            leased.write(connection(1))
        assert store.read() == connection(1)
        with store.leased(CLOCK) as leased:
            administrator.execute("UPDATE bookferry_state.leases SET owner = NULL, fence = fence + 1")
            write(store, connection(7))
            with pytest.raises(StorageError, match="changed by somebody else"):
                leased.write(connection(2))
    assert store.read() == connection(7)


def test_nothing_is_asked_for_without_the_lease(store_for: Open) -> None:
    """I3: the process was stopped for long before its request left, and another one renews the sign-in meanwhile."""
    store = store_for()
    with store.leased(CLOCK) as leased:
        leased.check()
        with store._store.transaction() as session:
            session.execute("UPDATE leases SET owner = NULL, fence = fence + 1")
        with pytest.raises(StorageError, match="has lost the lease of 'new'"):
            leased.check()


def test_the_settings_choose_the_store(tmp_path: Path, postgres_database: str) -> None:
    """`tokens`, $XDG_STATE_HOME, in this order; the database if `postgres_env` names one."""
    path = tmp_path / "bookferry.toml"
    tenant = f'[tenants.new]\nbase_url = "{BASE_URL}"\napi = "v3"\n'
    path.write_text(tenant)
    settings = load_settings(path)
    assert with_variables({"XDG_STATE_HOME": "/state"}, settings.tokens_folder) == Path("/state/bookferry")
    assert with_variables({"XDG_STATE_HOME": "relative", "HOME": "/h"}, settings.tokens_folder).parts[-3:] == (
        ".local",
        "state",
        "bookferry",
    )
    path.write_text(f'tokens = "here"\n{tenant}')
    assert open_tokens(load_settings(path), "new").place.startswith(str(tmp_path / "here"))
    path.write_text(f'postgres_env = "TEST_DATABASE"\n{tenant}')
    with pytest.raises(ConfigurationError, match="TEST_DATABASE, which is not set"):
        open_tokens(load_settings(path), "new")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_DATABASE", postgres_database)
        write(open_tokens(load_settings(path), "new"), connection())
        assert open_tokens(load_settings(path), "new").read() == connection()


def test_the_age_of_a_token_survives_a_clock_that_is_set_back() -> None:
    """It counts as old rather than young: a refresh too many does no harm."""
    grant, clock = connection().grant, ManualClock()
    assert grant is not None
    now = clock.now().timestamp()
    assert replace(grant, obtained=now - 600).left(clock) == 3000
    assert replace(grant, obtained=now + 60).left(clock) < 0
