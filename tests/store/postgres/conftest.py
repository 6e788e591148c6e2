"""A real server for all tests of a process, a database and a data folder for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.postgres import database
from tests.store.snapshot_factory import STARTED_AT, publish_records

Ask = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def address(state_server: str) -> Iterator[str]:
    """An empty database."""
    with database(state_server) as url:
        yield url


@pytest.fixture
def postgres(address: str) -> Database:
    """That database as loads use it, with a short wait for readers."""
    return Database(address, seconds=20)


def asking(connection: psycopg.Connection) -> Ask:
    """Runs SQL over a connection, as an analyst would."""

    def rows(sql: str, *values: object) -> list[tuple[Any, ...]]:
        answer = connection.execute(sql.encode(), values or None)
        return answer.fetchall() if answer.description else []

    rows("SET search_path = library")
    rows("SET TimeZone = 'UTC'")
    return rows


@pytest.fixture
def ask(address: str) -> Iterator[Ask]:
    """Runs SQL in the database."""
    with psycopg.connect(address, autocommit=True) as connection:
        yield asking(connection)


def library(count: int = 3, *, first: int = 1, **lists: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Resource → the JSON of its records: some publications, and the other resources that are given."""
    publications = [
        {
            "id": number,
            "title": f"Title {number}",
            "publishable_type": "Book",
            "published_on": "1984-06-08",
            "isbn": "978-0-306-40615-7",
            "doi": f"10.5555/{number}",
            "authors": [{"name": "Ada Lovelace", "type": "person"}, {"name": "Größe", "type": "corporate"}],
            "categories": [{"id": 1, "name": "Computing"}],
            "shelf_mark": f"A {number}",
            "cover": {"id": "c", "storage": "store", "metadata": {"size": 7, "filename": "c.png"}},
        }
        for number in range(first, first + count)
    ]
    return {
        resource: [json.dumps(record) for record in records]
        for resource, records in {"publications": publications, **lists}.items()
    }


def library_snapshot(
    data: DataFolder,
    records: Mapping[str, Sequence[str]] | None = None,
    *,
    tenant: str = "old",
    day: int = 0,
    complete: bool = True,
) -> Snapshot:
    """A snapshot of some resources, by default those of `library`, begun `day` days after the first."""
    started_at = STARTED_AT + timedelta(days=day)
    return publish_records(
        data, library() if records is None else records, tenant=tenant, now=started_at, complete=complete
    )
