"""I5: whoever reads while tables are exchanged sees the old snapshot or the new one; never an error, a mixture or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import psycopg
import pytest

from pipelines.errors import TemporaryError
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.store.postgres.conftest import Ask, library, night

Answer = tuple[str, int, bool]
"""Snapshot, rows, whether all tables in the query showed the same snapshot."""

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


def test_ten_exchanges_under_the_eyes_of_readers(address: str, data: DataFolder, postgres: Database) -> None:
    """Each answer is one whole snapshot, in its own size, whatever the query goes through; and readers see each of the eleven come."""
    nights = [night(data, library(count), day=count) for count in range(1, 12)]
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
                postgres.load(data, one)
        finally:
            ended.set()
    for one in reading:
        for snapshot, rows, whole in one.result():
            assert (rows, whole) == (sizes[snapshot], True)


@contextmanager
def transaction(address: str, *statements: str) -> Iterator[psycopg.Connection]:
    """A session in which some statements were run, and that has not ended its transaction."""
    with psycopg.connect(address, application_name="a long report") as connection:
        for statement in statements:
            connection.execute(statement.encode())
        yield connection


@pytest.fixture
def two(data: DataFolder, postgres: Database) -> Iterator[tuple[Snapshot, Snapshot]]:
    """A snapshot that is shown, and a newer one that is not."""
    first, second = night(data, library(1)), night(data, library(2), day=1)
    postgres.load(data, first)
    yield first, second
    postgres.load(data, second)  # nothing is left that would hinder it


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (("SELECT * FROM old.publications",), "some transaction held locks"),
        (("SELECT * FROM library.publication_authors",), "some transaction held locks"),
        (
            ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1"),
            "a transaction that is older than they are, and would have found them empty",
        ),
    ],
)
def test_a_reader_who_does_not_end_is_named_and_keeps_what_it_sees(
    address: str, data: DataFolder, two: tuple[Snapshot, Snapshot], held: tuple[str, ...], why: str
) -> None:
    """The old data stays and nothing is left behind; the message says who it is and what to run."""
    with transaction(address, *held) as connection:
        with pytest.raises(TemporaryError, match=re.escape(why)) as caught:
            Database(address, seconds=0.2).load(data, two[1])
        pid = connection.info.backend_pid
        for words in (
            f"process {pid}, user ",
            "a long report",
            "idle in transaction, since 2",
            "bookferry stage",
            "wait_seconds",
        ):
            assert words in str(caught.value)
        assert connection.execute("SELECT count(*) FROM library.publications_history").fetchall() == [(1,)]
        schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'old_loading'"
        assert connection.execute(schemas.encode()).fetchall() == [(0,)]


def test_a_reader_who_ends_in_time_is_waited_for(
    address: str, data: DataFolder, postgres: Database, two: tuple[Snapshot, Snapshot], ask: Ask
) -> None:
    """Locks are asked for again and again; a reader that comes in between is not held up for longer than a moment."""
    with ThreadPoolExecutor(1) as pool, transaction(address, "SELECT * FROM old.publications") as connection:
        loading = pool.submit(postgres.load, data, two[1])
        while not ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert not loading.done()
        assert ask("SELECT count(*) FROM publications") == [(1,)]
        connection.rollback()
        assert loading.result().tables["publications"] == 2
    assert ask("SELECT count(*) FROM publications") == [(2,)]
