"""Postgres has the data of the snapshots: tables, keys, comments, history, and the views over all libraries."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from typing import Any

import pytest

from pipelines.errors import ConfigurationError
from pipelines.records.tables.observed_columns import OBSERVED
from pipelines.records.tables.registry import TABLES
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.comparison import assert_same_views
from tests.store.postgres.conftest import Ask, library, library_snapshot

EVERYTHING: dict[str, list[dict[str, Any]]] = {
    "users": [{"id": 1, "email": "a@example.org", "name": "A", "roles": ["admin", "librarian"], "phone": "1"}],
    "hard_copies": [
        {"id": 5, "publication": {"id": 1}, "location": {"id": 7}, "barcode": "b", "acquired_on": "2001-02-03"}
    ],
    "locations": [{"id": 7, "name": "Shelf"}],
    "collections": [{"id": 8, "name": "C", "publication_ids": [1, 2]}],
    "authorities": [{"id": 9, "name": "Lovelace", "kind": "person", "variants": ["A. L."]}],
    "tasks": [{"id": 10, "title": "t", "publication_id": 2, "assignee_id": 1, "due_on": "2026-01-01"}],
}


@pytest.mark.long
def test_keys_and_comments_come_from_the_descriptions(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Primary keys and all comments are those of the table descriptions."""
    assert postgres.load(data, library_snapshot(data, library(**EVERYTHING))).left_out == []
    primary = ask(
        """SELECT conrelid::regclass::text, array_agg(attname::text ORDER BY place)
           FROM pg_constraint, unnest(conkey) WITH ORDINALITY AS k (number, place)
           JOIN pg_attribute ON attnum = number
           WHERE contype = 'p' AND attrelid = conrelid AND connamespace = 'old'::regnamespace GROUP BY 1"""
    )
    assert dict(primary) == {f"old.{name}_rows": list(table.key) for name, table in TABLES.items()} | {
        "old.snapshots": ["tenant", "snapshot"],
        "old.loaded_tables": ["table_name", "snapshot"],
    }
    rows = ask(
        """SELECT replace(relname, '_rows', '')::text, attname::text, col_description(attrelid, attnum)
           FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
           WHERE relnamespace = 'old'::regnamespace AND relkind = 'r' AND attname NOT IN ('tenant', 'snapshot') AND attnum > 0
             AND relname ~ '_rows$'"""
    )
    described = {row for row in rows if not row[2].startswith(OBSERVED)}
    assert described == {(n, column.name, column.comment) for n, table in TABLES.items() for column in table.columns}
    assert {row[:2] for row in rows} - {row[:2] for row in described} == {("users", "phone")}
    assert ask("SELECT obj_description('library.users'::regclass)")[0][0].startswith(TABLES["users"].comment)
    assert_same_views(data, ask, datetime(2026, 11, 20, 12, tzinfo=UTC))


def test_data_that_violates_a_key_is_loaded_and_reported(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Text ids, values too long for an index, NUL in texts and in JSON: the rows are loaded."""
    records = library(1, hard_copies=[{"id": 1, "publication_id": 999}], locations=[{"id": "text", "name": "a\0b"}])
    records["publications"] += [
        json.dumps({"id": 2, "title": "NUL \0", "odd": "\0\0 \\u0000", "authors": [{"name": _random_text()}]})
    ]
    staged = postgres.load(data, library_snapshot(data, records))
    assert staged.tables["publications"] == 2
    assert ask("SELECT title, residue->>'odd' FROM publications WHERE id = 2") == [
        ("NUL \ufffd", "\ufffd\ufffd \\u0000")
    ]
    assert sorted(staged.left_out) == [
        "locations: 1 row without primary key, because (id) is empty or not unique there.",
        "publication_authors: no index on (name), because some values are too long for one.",
    ]
    assert [note.split(":")[0] for note in staged.notes] == ["publications", "locations"]


def test_every_text_arrives_as_it_is(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """An empty one is not NULL; quotes, line ends, and what ends a COPY are characters like others."""
    texts = ["", " ", '"', '""', ",", "\\.", "a\n\\.\nb", "a\r\nb", "\r", "\\N", "NULL", "\ufeff\U0001f4da", None]
    records = [json.dumps({"id": number, "title": text}) for number, text in enumerate(texts)]
    postgres.load(data, library_snapshot(data, {"tasks": records}))
    assert ask("SELECT title FROM tasks ORDER BY id") == [(text,) for text in texts]


def _random_text() -> str:
    """A text that is too long for an index and cannot be compressed."""
    return "".join(chr(0x4E00 + number * 7919 % 20000) for number in range(20_000))


def test_history_follows_the_data_folder(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """An older snapshot goes into the history; a pruned one is dropped by the next load; a reloaded one is there once."""
    nights = [library_snapshot(data, library(count), day=count) for count in (1, 2, 3)]
    for place in (2, 0, 1, 1):
        postgres.load(data, nights[place])
    history = "SELECT snapshot, count(*) FROM publications_history GROUP BY snapshot ORDER BY snapshot"
    assert [count for _, count in ask(history)] == [1, 2, 3]
    assert ask("SELECT count(*) FROM old.publications") == [(3,)]
    ask("CREATE VIEW public.mine AS SELECT * FROM old.publications")
    shutil.rmtree(nights[0].path)
    shutil.rmtree(nights[2].path)
    staged = postgres.load(data, nights[1])
    assert [(count,) for _, count in ask(history)] == [(2,)]
    assert ask("SELECT count(*) FROM old.publications") == ask("SELECT count(*) FROM publications") == [(2,)]
    assert ask("SELECT snapshot FROM snapshots") == [(nights[1].manifest.snapshot,)]
    assert staged.notes == []
    assert ask("SELECT count(*) FROM public.mine") == [(2,)]
    assert postgres.loaded_snapshots("old") == [nights[1].manifest.snapshot]
    assert postgres.loaded_snapshots("new") == []


def test_views_that_are_gone_or_renamed_are_made_again(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Each load looks whether they are as they should be. What people built on the others stays."""
    postgres.load(data, library_snapshot(data))
    ask("DROP SCHEMA library CASCADE")
    ask("DROP VIEW old.publications, old.publications_history")
    postgres.load(data, library_snapshot(data, day=1))
    assert ask("SELECT count(*) FROM publications_history") == [(6,)]
    ask("ALTER VIEW library.publications RENAME COLUMN title TO name")
    postgres.load(data, library_snapshot(data, day=2))
    assert ask("SELECT title FROM publications WHERE id = 1") == [("Title 1",)]


@pytest.mark.long
def test_a_foreign_schema_is_left_alone(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Whether it has the name of a tenant or of the views."""
    ask("CREATE SCHEMA old")
    with pytest.raises(ConfigurationError, match=r'a schema "old" already, and Bookferry did not make it'):
        postgres.load(data, library_snapshot(data))
    ask("DROP SCHEMA old; CREATE SCHEMA library")
    with pytest.raises(ConfigurationError, match=r'a schema "library" already'):
        postgres.load(data, library_snapshot(data, day=1))
    ask("DROP SCHEMA library")
    names = ["a" * 40, "library", "pg_catalog", "public"]
    for name in names:
        postgres.load(data, library_snapshot(data, tenant=name, day=2))
    assert ask("SELECT DISTINCT tenant FROM publications ORDER BY 1") == [(name,) for name in names]
    assert ask("SELECT count(*) FROM bookferry_library.publications") == [(3,)]
    with pytest.raises(ConfigurationError, match="Bookferry keeps the library public there"):
        postgres.load(data, library_snapshot(data, tenant="bookferry_public", day=2))
