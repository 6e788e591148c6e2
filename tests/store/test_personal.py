"""Users' personal data: it is in no public view and, with a key, in no file in the clear."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import duckdb
import pytest

from pipelines.errors import ConfigurationError
from pipelines.records.tables.registry import RAW_TABLES, TABLES
from pipelines.store.catalogue import catalogue_in_memory, open_catalogue
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.maintenance.differences import compare
from pipelines.store.maintenance.verification import verify
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.snapshots.unfinished import open_capture
from tests.store.snapshot_factory import (
    KEY,
    OTHER,
    STARTED_AT,
    files_with,
    make_snapshot_and_catalogue,
    new_capture,
    publication_payloads,
)
from tests.store.test_catalogue import open_plainly

MARK = "unmistakable"
"""A word in every personal value of these tests."""

ENDS = ("", "_history", "_deleted")


def user_payloads(*ids: int, phone: int = 1) -> list[str]:
    """The JSON of users with these ids."""
    return [
        json.dumps(
            {
                "id": number,
                "email": f"person{number}@{MARK}.example",
                "name": f"Person {number} {MARK}",
                "roles": ["librarian", "admin"],
                "phone": f"{MARK} {phone}",
            }
        )
        for number in ids
    ]


def folder(data: DataFolder, *keys: PersonalKey) -> DataFolder:
    """The same folder, opened with these keys."""
    return DataFolder(data.path, PersonalKeys(keys), data.objects)


def users_snapshot(
    data: DataFolder, *ids: int, key: PersonalKey | None = KEY, day: int = 0, phone: int = 1
) -> Snapshot:
    """A snapshot of users."""
    keys = [key] if key else []
    now = STARTED_AT + timedelta(days=day)
    return make_snapshot_and_catalogue(folder(data, *keys), user_payloads(*ids, phone=phone), now=now, resource="users")


def ask(data: DataFolder, sql: str, *keys: PersonalKey, personal: bool = False) -> list[tuple[Any, ...]]:
    with open_catalogue(folder(data, *keys), personal=personal) as database:
        return database.execute(sql).fetchall()


class TestViews:
    """The views of `library.duckdb`, with and without personal data."""

    @pytest.mark.long
    def test_no_view_returns_personal_data(self, data: DataFolder) -> None:
        """Whatever the columns are called. Roles and ids are public, without the person behind them, as every other column."""
        users_snapshot(data, 1, 2, 3, key=None)
        users_snapshot(data, 1, 2, key=None, day=1)
        with open_plainly(data) as database:
            columns = database.execute("SELECT table_name, column_name FROM information_schema.columns").fetchall()
            for table in (*TABLES.values(), *RAW_TABLES):
                views = {column for view, column in columns if view in [f"{table.name}{end}" for end in ENDS]}
                assert views >= {column.name for column in table.columns if not column.personal}
                assert not views & {column.name for column in table.columns if column.personal}
            views = [
                row[0] for row in database.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
            ]
            assert len(views) > 2 * len(TABLES)
            for view in views:
                assert MARK not in str(database.execute(f"SELECT * FROM {view}").fetchall())
            assert database.execute("SELECT id FROM users ORDER BY id").fetchall() == [(1,), (2,)]
            assert database.execute("SELECT id FROM users_deleted").fetchall() == [(3,)]
            assert database.execute("SELECT count(*) FROM users_as_of('old', '2026-11-20 03:00+00')").fetchall() == [
                (3,)
            ]
            assert database.execute("SELECT DISTINCT role FROM user_roles ORDER BY role").fetchall() == [
                ("admin",),
                ("librarian",),
            ]

    @pytest.mark.long
    @pytest.mark.parametrize("key", [KEY, None])
    def test_a_personal_connection_has_all_columns_and_others_do_not(
        self, data: DataFolder, key: PersonalKey | None
    ) -> None:
        """The same view names and queries; the file on disk does not change."""
        users_snapshot(data, 1, 2, 3, key=key)
        users_snapshot(data, 1, 2, key=key, day=1)
        keys = [key] if key else []
        before = data.catalogue_path.read_bytes()
        for question, expected in (
            ("SELECT email FROM users ORDER BY id", [f"person1@{MARK}.example", f"person2@{MARK}.example"]),
            ("SELECT name FROM users_deleted", [f"Person 3 {MARK}"]),
            ("SELECT name FROM users_history WHERE id = 3", [f"Person 3 {MARK}"]),
            ("SELECT phone FROM users_as_of('old', '2026-11-20 03:00+00') WHERE id = 3", [f"{MARK} 1"]),
            ("SELECT payload->>'email' FROM raw_users WHERE id = 1", [f"person1@{MARK}.example"]),
            ("SELECT count(*) FROM user_roles", [4]),
        ):
            assert [row[0] for row in ask(data, question, *keys, personal=True)] == expected
        with open_catalogue(folder(data, *keys), personal=True) as database:
            for table in (*TABLES.values(), *RAW_TABLES):
                assert set(database.table(table.name).columns) >= {column.name for column in table.columns}
        assert data.catalogue_path.read_bytes() == before

    @pytest.mark.long
    def test_views_of_encrypted_tables_fail_with_a_message(self, data: DataFolder) -> None:
        """An empty result would be wrong. The message is the same with the key in the settings, and all other views work."""
        make_snapshot_and_catalogue(data, publication_payloads(2))
        users_snapshot(data, 1, 2, day=1)
        for keys in ([], [KEY]):
            for question in (
                *(f"SELECT * FROM {name}{end}" for name in ("users", "raw_users") for end in ("", "_history")),
                "SELECT count(*) FROM user_roles",
                "SELECT * FROM users_as_of('old', now())",
                "SELECT count(*) FROM users WHERE id = 1 AND tenant = 'old'",
                "SELECT role FROM user_roles JOIN users ON users.id = user_id",
            ):
                with pytest.raises(duckdb.Error, match=r"is encrypted, because it is about people.*query --personal"):
                    ask(data, question, *keys)
            assert ask(data, "SELECT count(*) FROM publications", *keys) == [(2,)]
            assert ask(data, "SELECT records, resources FROM snapshots WHERE resources = 'users'", *keys) == [
                (2, "users")
            ]

    def test_without_the_right_key_the_message_names_the_missing_key(self, data: DataFolder) -> None:
        """The message also says where the key is expected. Other views work."""
        users_snapshot(data, 1)
        for keys, reason in ((PersonalKeys(), "personal_key_env"), (PersonalKeys([OTHER]), OTHER.fingerprint)):
            with open_catalogue(DataFolder(data.path, keys), personal=True) as database:
                with pytest.raises(duckdb.Error, match=f"encrypted with the personal key {KEY.fingerprint}.*{reason}"):
                    database.execute("SELECT * FROM users")
                assert database.execute("SELECT count(*) FROM publications").fetchall() == [(0,)]

    @pytest.mark.long
    def test_old_snapshots_stay_readable_beside_encrypted_ones(self, data: DataFolder) -> None:
        """One without a key, one with an old key, one with the current key; the old key stands after the current one."""
        users_snapshot(data, 1, key=None)
        users_snapshot(data, 1, 2, key=OTHER, day=1)
        users_snapshot(data, 1, 2, 3, day=2)
        rows = ask(
            data, "SELECT snapshot, count(email) FROM users_history GROUP BY 1 ORDER BY 1", KEY, OTHER, personal=True
        )
        assert [row[1] for row in rows] == [1, 2, 3]
        assert ask(data, "SELECT count(*) FROM users", KEY, personal=True) == [(3,)]


class TestAtRest:
    """With a key, no personal data is on the disk in the clear at any moment."""

    def test_a_capture_continues_with_its_own_key_only(self, data: DataFolder) -> None:
        """Another key cannot finish it."""
        new_capture(folder(data, KEY))
        assert open_capture(folder(data, OTHER, KEY), "old", "run").key == KEY
        for keys in ([], [OTHER]):
            with pytest.raises(ConfigurationError, match=f"encrypted with the personal key {KEY.fingerprint}"):
                open_capture(folder(data, *keys), "old", "run")


class TestDifferences:
    """`diff` reads the raw tables of users, with any encryption."""

    def test_without_the_key(self, data: DataFolder) -> None:
        """A configuration error with its remedy."""
        a, b = users_snapshot(data, 1), users_snapshot(data, 1, day=1)
        for keys in ([], [OTHER]):
            with pytest.raises(ConfigurationError, match=re.escape(f"users of {a.name} is encrypted")):
                compare(folder(data, *keys), a, b)


@pytest.mark.long
def test_every_kind_of_store(stored: DataFolder) -> None:
    """A folder, memory, a bucket: publish, verify, compare and query with the keys; no object reveals personal data."""
    a, b = users_snapshot(stored, 1, 2, 3, key=OTHER), users_snapshot(stored, 2, 3, 4, day=1)
    keyed = folder(stored, KEY, OTHER)
    assert [verify(keyed, snapshot.key, now=STARTED_AT).notes for snapshot in (a, b)] == [[], []]
    assert len(verify(stored, b.key, now=STARTED_AT).notes) == 3
    comparison = compare(keyed, a, b).resources["users"]
    assert (comparison.added, comparison.removed, comparison.unchanged) == (1, 1, 2)
    changed = compare(keyed, b, users_snapshot(stored, 2, 3, 4, day=2, phone=2)).resources["users"]
    assert (changed.fields, MARK in str(changed)) == ({"phone": 3}, False)
    rows = ask(stored, "SELECT email FROM users WHERE id = 4", KEY, personal=True)
    assert rows == [(f"person4@{MARK}.example",)]
    in_memory = [catalogue_in_memory(keyed, personal=personal) for personal in (True, False)]
    assert in_memory[0].execute("SELECT email FROM users WHERE id = 4").fetchall() == rows
    with pytest.raises(duckdb.Error, match='"email" not found'):
        in_memory[1].execute("SELECT email FROM users")
    with pytest.raises(duckdb.Error, match="is encrypted, because it is about people"):
        ask(stored, "SELECT id FROM users")
    contents = [stored.objects.read(entry.key) for entry in stored.objects.below("snapshots")]
    assert len(contents) == 12
    assert not [content for content in contents for word in (MARK, KEY.text) if word.encode() in content]
    assert files_with(stored.path, MARK.encode()) == []
