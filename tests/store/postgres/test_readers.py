"""I5: readers during a swap see the old snapshot or the new one; never an error, a mixture or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import psycopg
import pytest

from pipelines.errors import TemporaryError
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.store.postgres.conftest import Ask, library, library_snapshot

Answer = tuple[str, int, bool]
"""Snapshot, rows, whether all tables in the query had the same snapshot."""

DIRECT = """
    SELECT p.snapshot, count(*), bool_and(i.snapshot = p.snapshot)
    FROM old.publications AS p LEFT JOIN old.publication_authors AS i ON i.publication_id = p.id
    GROUP BY p.snapshot"""
VIEWS = """
    SELECT p.snapshot, count(*), bool_and(i.snapshot = p.snapshot AND p.snapshot = n.snapshot)
    FROM library.publications AS p
    LEFT JOIN library.publication_authors AS i ON i.publication_id = p.id
    CROSS JOIN (SELECT max(snapshot) AS snapshot FROM library.snapshots) AS n
    GROUP BY p.snapshot"""
HISTORY = """
    SELECT p.snapshot, count(*), count(DISTINCT i.snapshot) = 1
    FROM library.publications_history AS p JOIN library.publication_authors_history AS i
      ON i.snapshot = p.snapshot AND i.publication_id = p.id
    WHERE p.snapshot = (SELECT max(snapshot) FROM library.publications)
    GROUP BY p.snapshot"""

READERS = [
    (DIRECT, psycopg.IsolationLevel.READ_COMMITTED),
    (VIEWS, psycopg.IsolationLevel.READ_COMMITTED),
    (HISTORY, psycopg.IsolationLevel.READ_COMMITTED),
    (VIEWS, psycopg.IsolationLevel.REPEATABLE_READ),
]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["whole loads", "changes"])
def test_ten_loads_during_queries(
    address: str, data: DataFolder, postgres: Database, whole: Callable[[], None], kind: str
) -> None:
    """Each result is one complete snapshot, by every way of querying; and the readers see each of the eleven."""
    nights = [library_snapshot(data, library(count), day=count) for count in range(1, 12)]
    sizes = {one.manifest.snapshot: 2 * count for count, one in enumerate(nights, start=1)}
    postgres.load(data, nights[0])
    ended = Event()

    def read(sql: str, level: psycopg.IsolationLevel) -> set[Answer]:
        seen = set[Answer]()
        with psycopg.connect(address) as connection:
            connection.isolation_level = level
            while not ended.is_set():
                with connection.transaction():
                    first = connection.execute("SELECT 1 FROM library.snapshots LIMIT 1").fetchall()
                    answer = connection.execute(sql.encode()).fetchall()
                assert len(first) == len(answer) == 1
                seen.add(answer[0])
        return seen

    with ThreadPoolExecutor(len(READERS)) as pool:
        reading = [pool.submit(read, *reader) for reader in READERS]
        try:
            for one in nights[1:]:
                if kind == "whole loads":
                    whole()
                assert (postgres.load(data, one).written is None) == (kind == "whole loads")
        finally:
            ended.set()
    for one in reading:
        for snapshot, rows, consistent in one.result():
            assert (rows, consistent) == (sizes[snapshot], True)


@contextmanager
def transaction(address: str, *statements: str) -> Iterator[psycopg.Connection]:
    """A session with an open transaction after these statements."""
    with psycopg.connect(address, application_name="a long report") as connection:
        for statement in statements:
            connection.execute(statement.encode())
        yield connection


@pytest.fixture
def loaded_and_new(
    data: DataFolder, postgres: Database, whole: Callable[[], None]
) -> Iterator[tuple[Snapshot, Snapshot]]:
    """A loaded snapshot, and a newer one that is not loaded, and will be loaded whole."""
    first, second = library_snapshot(data, library(1)), library_snapshot(data, library(2), day=1)
    postgres.load(data, first)
    whole()
    yield first, second
    postgres.load(data, second)  # nothing is left that would hinder it


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (("SELECT * FROM old.publications",), "a transaction held locks"),
        (("SELECT * FROM library.publication_authors",), "a transaction held locks"),
        (
            ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1"),
            "a transaction that is older than they are, and would find them empty",
        ),
    ],
)
def test_a_reader_that_does_not_end_is_named_and_keeps_its_rows(
    address: str, data: DataFolder, loaded_and_new: tuple[Snapshot, Snapshot], statements: tuple[str, ...], why: str
) -> None:
    """The old data stays and nothing is left behind. The message names the reader and the command to run."""
    with transaction(address, *statements) as connection:
        with pytest.raises(TemporaryError, match=re.escape(why)) as caught:
            Database(address, seconds=0.2).load(data, loaded_and_new[1])
        pid = connection.info.backend_pid
        for words in (
            f"process {pid}, user ",
            "a long report",
            "idle in transaction, since 2",
            "bookferry stage",
        ):
            assert words in str(caught.value)
        assert connection.execute("SELECT count(*) FROM library.publications_history").fetchall() == [(1,)]
        schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'old_loading'"
        assert connection.execute(schemas.encode()).fetchall() == [(0,)]


def test_the_swap_waits_for_a_reader_that_ends_in_time(
    address: str, data: DataFolder, postgres: Database, loaded_and_new: tuple[Snapshot, Snapshot], ask: Ask
) -> None:
    """Locks are requested in short tries; a new reader waits for a moment at most."""
    with ThreadPoolExecutor(1) as pool, transaction(address, "SELECT * FROM old.publications") as connection:
        loading = pool.submit(postgres.load, data, loaded_and_new[1])
        while not ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert not loading.done()
        assert ask("SELECT count(*) FROM publications") == [(1,)]
        connection.rollback()
        assert loading.result().tables["publications"] == 2
    assert ask("SELECT count(*) FROM publications") == [(2,)]


def test_changes_wait_for_no_reader(
    address: str, data: DataFolder, postgres: Database, loaded_and_new: tuple[Snapshot, Snapshot], ask: Ask
) -> None:
    """A transaction that is open before, in the middle of its queries, reads its night to its end; a later one reads the new night."""
    postgres.load(data, loaded_and_new[1])
    third = library_snapshot(data, library(3, first=2), day=2)
    repeatable = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    with transaction(address, repeatable, "SELECT * FROM library.publication_authors") as connection:
        assert postgres.load(data, third).written is not None
        for sql in (DIRECT, VIEWS, HISTORY):
            assert connection.execute(sql.encode()).fetchall() == [(loaded_and_new[1].manifest.snapshot, 4, True)]
        assert connection.execute("SELECT count(*) FROM library.snapshots").fetchall() == [(2,)]
    for sql in (DIRECT, VIEWS, HISTORY):
        assert ask(sql) == [(third.manifest.snapshot, 6, True)]
