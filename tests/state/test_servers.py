"""Servers, poolers before them, and the tables there."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from pipelines.errors import StorageError, TenantBusyError
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import Budget
from pipelines.state import server
from pipelines.state.postgres import PostgresState
from tests.postgres import database, postgres_user
from tests.state_places import Place, slots_taken

CLOCK = SystemClock()
PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@pytest.fixture(
    params=["pool_mode = transaction\nserver_round_robin = 1", "pool_mode = session"], ids=["transaction", "session"]
)
def pooled(request: pytest.FixtureRequest, shared_place: Place, tmp_path: Path) -> Iterator[str]:
    """The address of a PgBouncer before the database; one gives each transaction another session."""
    if PGBOUNCER is None:
        pytest.skip("no PgBouncer is installed")
    url = sa.make_url(shared_place.address)
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    folder = tmp_path / "pooler"
    folder.mkdir()
    (folder / "users.txt").write_text(f'"{url.username}" ""\n')
    (folder / "pooler.ini").write_text(
        f"[databases]\n{url.database} = host={url.query['host']} dbname={url.database} user={url.username}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n{request.param}\n"
    )
    user = postgres_user()  # PgBouncer refuses to run as root, too
    if user is not None:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, user)
        for parent in (tmp_path, *tmp_path.parents):
            if parent.owner() == "root" and parent != Path("/") and parent != Path("/tmp"):
                parent.chmod(parent.stat().st_mode | 0o011)
    quiet = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    with subprocess.Popen([PGBOUNCER, "pooler.ini"], cwd=folder, user=user, **quiet) as process:
        address = f"postgresql://{url.username}@127.0.0.1:{port}/{url.database}"
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(address).close()
            except psycopg.OperationalError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            else:
                break
        yield address
        process.kill()


@pytest.mark.long
def test_a_pooler_may_stand_between(pooled: str, shared_place: Place) -> None:
    """A lease is no session."""
    state = PostgresState(pooled)
    budget = Budget(state, "library", 2, CLOCK)
    journal = Journal(state, "https://a", "https://b", CLOCK)
    with state.lease("old", "here"):
        budget.acquire().sent()
        for source_id in range(10):
            journal.intend("plan", "users", source_id, WriteKind.CREATE)
        with pytest.raises(TenantBusyError), PostgresState(pooled).lease("old", "here"):
            pass
        assert len([*journal.of_plan("plan")]) == 10
    assert shared_place.state(CLOCK).leased(["old"], "here") == set()
    assert slots_taken(budget) == 1
    journal.close()
    budget.close()


@pytest.mark.parametrize(("default", "used"), [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")])
def test_a_commit_waits_for_the_disk_whatever_the_database_is_set_to(
    shared_place: Place, default: str, used: str
) -> None:
    """The journal is as durable as in the file; a stronger setting is kept."""
    name = sa.make_url(shared_place.address).database
    with psycopg.connect(shared_place.address, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {default}")
    with closing(shared_place.state(CLOCK).open(CLOCK)) as store:
        assert store.read("SELECT current_setting('synchronous_commit')", ()) == [(used,)]


@pytest.mark.parametrize(
    ("version", "message"), [(1000, r"newer Bookferry \(version 1000"), (3, r"earlier Bookferry \(version 3")]
)
def test_a_state_of_another_bookferry_is_left_alone(place: Place, version: int, message: str) -> None:
    """One machine was updated before the other, or the state was made before its format changed."""
    budget = Budget(place.state(CLOCK), "library", 2, CLOCK)
    with budget._store.transaction() as session:
        session.execute("UPDATE state_version SET version = ?", (version,))
    budget.close()
    with pytest.raises(StorageError, match=message):
        Budget(place.state(CLOCK), "library", 2, CLOCK)


def test_several_machines_can_make_the_tables_at_once(shared_place: Place) -> None:
    together = threading.Barrier(6)
    used: list[int] = []

    def begin() -> None:
        state = shared_place.state(CLOCK)
        together.wait()
        budget = Budget(state, "library", 10, CLOCK)
        budget.acquire()
        used.append(slots_taken(budget))

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(used) == 6


def test_a_text_that_postgres_cannot_store_is_stored_nearly(place: Place) -> None:
    """A message of a service may have a NUL. The entry must not be lost for it."""
    journal = Journal(place.state(CLOCK), "https://a", "https://b", CLOCK)
    number = journal.intend("plan", "users", 1, WriteKind.CREATE, "a\0file", wanted={"name": "x\0y 100 % ? :z"})
    journal.refused(number, "no\0t this one: 100 %?")
    [entry] = journal.of_record("users", 1)
    assert entry.wanted == {"name": "x\0y 100 % ? :z"}
    assert (entry.message or "").replace("\0", "\ufffd") == "no\ufffdt this one: 100 %?"
    assert journal.intend("plan", "users", 1, WriteKind.CREATE, "a\0file") == number
    journal.close()


@pytest.mark.long
def test_a_reader_may_take_its_time(shared_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan matches for minutes between two rows of the journal; only a transaction that writes has to go on."""
    monkeypatch.setattr(server, "_TRANSACTION_SECONDS", 1)
    journal = Journal(shared_place.state(CLOCK), "https://a", "https://b", CLOCK)
    for source_id in range(1500):
        journal.done(journal.intend("plan", "users", source_id, WriteKind.CREATE), target_id=source_id)
    count = 0
    for record in journal.written("users"):
        if record.source_id == 500:
            shared_place.rows("SELECT pg_sleep(2)")
        count += 1
    assert count == 1500
    journal.close()


def test_a_database_without_an_encoding(state_server: str) -> None:
    """Psycopg reads its texts as bytes. The name of the server is among them: unequal, it would take all slots at each look."""
    with (
        database(state_server, "TEMPLATE template0 ENCODING SQL_ASCII") as address,
        closing(PostgresState(address)) as state,
    ):
        assert slots_taken(Budget(state, "library", 60, CLOCK)) == 0
