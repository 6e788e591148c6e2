"""Observed columns from night to night: DuckDB and Postgres show the same history, with the widest type that any night had."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from pipelines.store.catalogue import open_catalogue
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.store.postgres.comparison import assert_same_views
from tests.store.postgres.conftest import Ask
from tests.store.snapshot_factory import STARTED_AT, publish_records

NIGHTS: list[list[dict[str, Any]]] = [
    [{"id": 1, "title": "Bind", "due": "2026-01-31", "shelf": {"row": 4}}],
    [{"id": 1, "title": "Bind", "due": "soon", "shelf": {"row": 4}, "urgent": True}],
    [{"id": 1, "title": "Bind", "urgent": [True], "shelf": {"row": 4.5}}, {"id": 2, "title": "Cut"}],
]
HISTORY = "SELECT id, due, shelf_row, CAST(urgent AS VARCHAR) FROM tasks_history ORDER BY snapshot, id"
EXPECTED = [
    (1, "2026-01-31", 4.0, None),
    (1, "soon", 4.0, "true"),
    (1, None, 4.5, "[true]"),
    (2, None, None, None),
]


def night(data: DataFolder, number: int, tenant: str = "old") -> Snapshot:
    payloads = [json.dumps(record) for record in NIGHTS[number]]
    return publish_records(data, {"tasks": payloads}, tenant=tenant, now=STARTED_AT + timedelta(days=number))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)], ids=["night by night", "newest first"])
def test_postgres_gets_new_and_wider_columns_without_losing_history(
    data: DataFolder, postgres: Database, ask: Ask, order: tuple[int, ...]
) -> None:
    """In place, and for two libraries with other fields; newest first, all nights are there before the first is loaded."""
    history = HISTORY.replace("FROM tasks_history", "FROM tasks_history WHERE tenant = 'old'")
    snapshots = {number: night(data, number) for number in (range(3) if order[0] else ())}
    for number in order:
        postgres.load(data, snapshots.get(number) or night(data, number))
        postgres.load(data, night(data, 0, tenant="second"))
    assert ask(history) == EXPECTED
    assert ask("SELECT id, due, shelf_row FROM tasks WHERE tenant = 'old' ORDER BY id") == [
        (1, None, 4.5),
        (2, None, None),
    ]
    assert ask("SELECT id, due, urgent FROM tasks WHERE tenant = 'second'") == [(1, "2026-01-31", None)]
    assert ask("SELECT pg_typeof(urgent)::text, pg_typeof(shelf_row)::text FROM tasks LIMIT 1") == [
        ("jsonb", "double precision")
    ]
    [(comment,)] = ask(
        "SELECT col_description('library.tasks'::regclass, attnum) FROM pg_attribute WHERE attname = 'due'"
        " AND attrelid = 'library.tasks'::regclass"
    )
    assert comment.startswith("The service's own field due, observed since 2026-11-20")
    with open_catalogue(data) as database:
        assert database.execute(history).fetchall() == EXPECTED
    assert ask("SELECT id, due FROM tasks_as_of('old', '2026-11-21T12:00:00Z')") == [(1, "soon")]


AWKWARD = {
    **dict.fromkeys(["xmin", "XMAX", "ctid", "tableoid", "oid", "until", "snapshot", "tenant", "sha256", "residue"], 1),
    **{f"{'très long ' * 18}{end}": end for end in ("one", "two")},
    **dict.fromkeys(["", "\0", "7", 'a"b', "Due", "due", "日" * 40, "日" * 41], "text"),
}
"""Names of fields that an engine cuts, has itself, or that we have; one of them nobody can print."""


def test_fields_of_any_name_have_columns_in_every_engine(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Two nights: one such name kept a library out of the database. Engines take names in both cases for one, of another library, too."""
    for day in range(2):
        snapshot = publish_records(
            data, {"tasks": [json.dumps({"id": 1, **AWKWARD})]}, now=STARTED_AT + timedelta(days=day)
        )
        postgres.load(data, snapshot)
    names = [column.name for column in snapshot.manifest.observed["tasks"]]
    assert len({name.casefold() for name in names}) == len(names)
    assert max(len(name.encode()) for name in names) <= 63
    assert {"xmin_2", "xmax_2", "until_2"} <= {*names}
    assert {key for column in snapshot.manifest.observed["tasks"] for key in column.path} == {*AWKWARD} - {"\0", ""}
    assert ask("SELECT count(*) FROM tasks_history WHERE xmin_2 = 1") == [(2,)]
    second_library = publish_records(
        data, {"tasks": [json.dumps({"id": 1, "OID": 2})]}, tenant="second", now=STARTED_AT
    )
    postgres.load(data, second_library)
    assert ask("SELECT tenant, oid_2 FROM tasks ORDER BY tenant") == [("old", 1), ("second", 2)]
    assert_same_views(data, ask, STARTED_AT + timedelta(hours=1))
