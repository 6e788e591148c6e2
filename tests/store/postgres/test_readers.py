"""I5: readers during a load see the old snapshot or the new one; never an error, a mixture or nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest

from pipelines.errors import TemporaryError
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder
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
def test_ten_loads_during_queries(address: str, data: DataFolder, postgres: Database) -> None:
    """Each result is one complete snapshot, by every way of querying."""
    nights = [library_snapshot(data, library(count), day=count) for count in range(1, 12)]
    sizes = {night.manifest.snapshot: 2 * count for count, night in enumerate(nights, start=1)}
    postgres.load(data, nights[0])
    ended = Event()

    def read(sql: str, level: psycopg.IsolationLevel) -> set[Answer]:
        answers = set[Answer]()
        with psycopg.connect(address) as connection:
            connection.isolation_level = level
            while not ended.is_set():
                with connection.transaction():
                    first = connection.execute("SELECT 1 FROM library.snapshots LIMIT 1").fetchall()
                    answer = connection.execute(sql.encode()).fetchall()
                assert len(first) == len(answer) == 1
                answers.add(answer[0])
        return answers

    with ThreadPoolExecutor(len(READERS)) as pool:
        reading = [pool.submit(read, *reader) for reader in READERS]
        try:
            for night in nights[1:]:
                postgres.load(data, night)
        finally:
            ended.set()
    for future in reading:
        for snapshot, rows, consistent in future.result():
            assert (rows, consistent) == (sizes[snapshot], True)


TASK, RATED = '{"id": 1, "title": "Bind"}', '{"id": 2, "title": "Cut", "rating": 3}'
"""Records, the second one with a field that the first has not."""


def test_a_reader_in_the_way_of_a_new_column_is_named_and_keeps_its_rows(
    address: str, data: DataFolder, postgres: Database, ask: Ask
) -> None:
    """A field that comes changes tables and views: the load tries it in short tries, and names who holds them, or waits for their end.

    A new reader waits for a moment at most.
    """
    postgres.load(data, library_snapshot(data, {"tasks": [TASK]}))
    rated = library_snapshot(data, {"tasks": [TASK, RATED]}, day=1)
    with psycopg.connect(address, application_name="a long report") as connection, ThreadPoolExecutor(1) as pool:
        connection.execute("SELECT * FROM library.tasks")
        with pytest.raises(TemporaryError, match="a transaction held locks on them") as caught:
            Database(address, seconds=0.2).load(data, rated)
        pid = connection.info.backend_pid
        for words in (f"process {pid}, user ", "a long report", "idle in transaction, since 2", "bookferry stage"):
            assert words in str(caught.value)
        assert connection.execute("SELECT count(*) FROM library.tasks_history").fetchall() == [(1,)]
        loading = pool.submit(postgres.load, data, rated)
        while not ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert not loading.done()
        assert ask("SELECT count(*) FROM tasks") == [(1,)]
        connection.rollback()
        assert loading.result().tables["tasks"] == 2
    assert ask("SELECT id, rating FROM tasks ORDER BY id") == [(1, None), (2, 3)]
