"""Users' personal data: in no view that everybody sees, and with a key in no file that everybody can read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet.encryption import create_decryption_properties

from pipelines.backup import staging
from pipelines.backup.staging import LARGE, StagingProcess
from pipelines.errors import ConfigurationError
from pipelines.records.tables.registry import RAW_TABLES, TABLES
from pipelines.store.catalogue import catalogue_in_memory, open_catalogue
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.maintenance.differences import compare
from pipelines.store.maintenance.verification import SnapshotVerification, keys_to_verify, verify
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.store.steps import NIGHT, begin, make_snapshot, read, records

KEY, OTHER = PersonalKey(bytes(range(32))), PersonalKey(bytes(32))
MARK = "unmistakable"
"""In everything that is personal in these tests."""

ENDS = ("", "_history", "_deleted")


def people(*ids: int, phone: int = 1) -> list[str]:
    """The JSON of users with these ids."""
    return [
        json.dumps(
            {
                "id": one,
                "email": f"person{one}@{MARK}.example",
                "name": f"Person {one} {MARK}",
                "roles": ["librarian", "admin"],
                "phone": f"{MARK} {phone}",
            }
        )
        for one in ids
    ]


def folder(data: DataFolder, *keys: PersonalKey) -> DataFolder:
    """The same folder, for somebody with these keys."""
    return DataFolder(data.path, PersonalKeys(keys), data.objects)


def night(data: DataFolder, *ids: int, key: PersonalKey | None = KEY, day: int = 0, phone: int = 1) -> Snapshot:
    """A snapshot of users."""
    keys = [key] if key else []
    now = NIGHT + timedelta(days=day)
    return make_snapshot(folder(data, *keys), people(*ids, phone=phone), now=now, resource="users")


def ask(data: DataFolder, sql: str, *keys: PersonalKey, personal: bool = False) -> list[tuple[Any, ...]]:
    with open_catalogue(folder(data, *keys), personal=personal) as database:
        return database.execute(sql).fetchall()


@contextmanager
def plain(data: DataFolder) -> Iterator[duckdb.DuckDBPyConnection]:
    """As any client would open it."""
    with duckdb.connect(str(data.catalogue_path), read_only=True) as database:
        yield database


def files_with(data: DataFolder, word: str) -> list[str]:
    """Files of the data folder that hold `word` as it stands."""
    return [str(path) for path in data.path.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


class TestViews:
    """What `library.duckdb` shows to everybody, and to who asks for more."""

    @pytest.mark.parametrize("key", [KEY, None])
    def test_no_view_has_a_personal_column(self, data: DataFolder, key: PersonalKey | None) -> None:
        """By the descriptions, and by what a client sees; every other column of every table is there."""
        night(data, 1, 2, key=key)
        with plain(data) as database:
            seen = database.execute("SELECT table_name, column_name FROM information_schema.columns").fetchall()
        for table in (*TABLES.values(), *RAW_TABLES):
            views = {column for view, column in seen if view in [f"{table.name}{end}" for end in ENDS]}
            assert views >= {column.name for column in table.columns if not column.personal}
            assert not views & {column.name for column in table.columns if column.personal}

    def test_nothing_personal_comes_out_of_any_view(self, data: DataFolder) -> None:
        """Whatever the columns are called. Roles and ids are for everybody: who is behind them is not."""
        night(data, 1, 2, 3, key=None)
        night(data, 1, 2, key=None, day=1)
        with plain(data) as database:
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

    @pytest.mark.parametrize("key", [KEY, None])
    def test_who_asks_for_it_sees_all_columns_in_that_connection_only(
        self, data: DataFolder, key: PersonalKey | None
    ) -> None:
        """The same names, the same questions; the file on disk stays as it is."""
        night(data, 1, 2, 3, key=key)
        night(data, 1, 2, key=key, day=1)
        keys = [key] if key else []
        before = data.catalogue_path.read_bytes()
        for question, expected in (
            ("SELECT email FROM users ORDER BY id", [f"person1@{MARK}.example", f"person2@{MARK}.example"]),
            ("SELECT name FROM users_deleted", [f"Person 3 {MARK}"]),
            ("SELECT name FROM users_history WHERE id = 3", [f"Person 3 {MARK}"]),
            ("SELECT residue->>'phone' FROM users_as_of('old', '2026-11-20 03:00+00') WHERE id = 3", [f"{MARK} 1"]),
            ("SELECT payload->>'email' FROM raw_users WHERE id = 1", [f"person1@{MARK}.example"]),
            ("SELECT count(*) FROM user_roles", [4]),
        ):
            assert [row[0] for row in ask(data, question, *keys, personal=True)] == expected
        with open_catalogue(folder(data, *keys), personal=True) as database:
            for table in (*TABLES.values(), *RAW_TABLES):
                assert set(database.table(table.name).columns) >= {column.name for column in table.columns}
        assert data.catalogue_path.read_bytes() == before

    def test_views_of_what_is_encrypted_say_so(self, data: DataFolder) -> None:
        """No empty answer, which would be a wrong one; with the key at hand it is the same, and all else works without."""
        make_snapshot(data, records(2))
        night(data, 1, 2, day=1)
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

    def test_without_the_right_key_the_question_is_answered_with_what_is_missing(self, data: DataFolder) -> None:
        """The views of users say which key they need and where it is looked for; the others answer."""
        night(data, 1)
        for keys, said in ((PersonalKeys(), "personal_key_env"), (PersonalKeys([OTHER]), OTHER.fingerprint)):
            with open_catalogue(DataFolder(data.path, keys), personal=True) as database:
                with pytest.raises(duckdb.Error, match=f"encrypted with the personal key {KEY.fingerprint}.*{said}"):
                    database.execute("SELECT * FROM users")
                assert database.execute("SELECT count(*) FROM publications").fetchall() == [(0,)]

    def test_old_nights_stay_readable_beside_encrypted_ones(self, data: DataFolder) -> None:
        """One without a key, one with an old key, one with the key in use; the older key stands after it."""
        night(data, 1, key=None)
        night(data, 1, 2, key=OTHER, day=1)
        night(data, 1, 2, 3, day=2)
        rows = ask(
            data, "SELECT snapshot, count(email) FROM users_history GROUP BY 1 ORDER BY 1", KEY, OTHER, personal=True
        )
        assert [row[1] for row in rows] == [1, 2, 3]
        assert ask(data, "SELECT count(*) FROM users", KEY, personal=True) == [(3,)]


class TestAtRest:
    """With a key, nothing of a person is on the disk as it stands, not even for a moment."""

    def test_nothing_of_a_person_is_in_the_folder(self, data: DataFolder) -> None:
        """After each step, in whatever file, named so or not. Without the key it would be."""
        made = folder(data, KEY)
        capture = begin(made)
        read(capture, people(*range(1, 400)), resource="users")
        assert files_with(data, MARK) == []
        night(data, 1, 2, 3)
        ask(data, "SELECT email FROM users", KEY, personal=True)
        assert files_with(data, MARK) == []
        assert files_with(data, KEY.text) == []
        assert [path for path in data.path.rglob("*") if path.is_file() and KEY.secret in path.read_bytes()] == []
        night(data, 1, key=None, day=1)
        assert files_with(data, MARK)

    def test_the_manifest_names_the_key_without_showing_it(self, data: DataFolder) -> None:
        """By its fingerprint (I10)."""
        tables = night(data, 1).manifest.tables
        assert {name: (facts.encrypted, facts.key) for name, facts in tables.items()} == dict.fromkeys(
            ("raw_users", "users", "user_roles"), (True, KEY.fingerprint)
        )
        other = make_snapshot(folder(data, KEY), now=NIGHT + timedelta(days=1)).manifest.tables
        assert not any(facts.encrypted or facts.key for facts in other.values())

    def test_pyarrow_alone_reads_a_snapshot_with_the_key(self, data: DataFolder) -> None:
        """No Bookferry is needed to read what it encrypted."""
        snapshot = night(data, 1, 2)
        key = create_decryption_properties(footer_key=KEY.secret)
        rows = pq.read_table(snapshot.path / "users.parquet", decryption_properties=key).to_pylist()
        assert [row["email"] for row in rows] == [f"person1@{MARK}.example", f"person2@{MARK}.example"]
        raw = pq.read_table(snapshot.path / "raw" / "users.parquet", decryption_properties=key).to_pylist()
        assert [row["payload"] for row in raw] == people(1, 2)  # byte for byte (I6)

    def test_the_process_that_stages_gets_the_key_by_its_environment(
        self, data: DataFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Arguments are for every user of the machine to see (I10)."""
        monkeypatch.setattr("pipelines.backup.staging._cores", lambda: 2)
        capture = begin(folder(data, KEY))
        read(capture, people(1, 2), resource="users")
        with capture.open_file("raw_users") as file:
            [batch] = file.iter_batches()
        with StagingProcess(capture, "users") as process:
            assert not [word for word in process._command if KEY.text in word]
            process.start_if_large(LARGE)
            process.send(batch)
            facts = process.finish(2)
        assert facts is not None
        assert facts.rows == {"users": 2, "user_roles": 4}
        assert files_with(data, MARK) == []

    def test_a_capture_goes_on_with_its_own_key_only(self, data: DataFolder) -> None:
        """What one key began another cannot end."""
        begin(folder(data, KEY))
        assert folder(data, OTHER, KEY).capture("old", "run").key == KEY
        for keys in ([], [OTHER]):
            with pytest.raises(ConfigurationError, match=f"encrypted with the personal key {KEY.fingerprint}"):
                folder(data, *keys).capture("old", "run")

    def test_a_missing_key_stops_before_anything_is_read(self, data: DataFolder) -> None:
        """Nobody wants the night without encryption that he asked to have with it."""
        keys = PersonalKeys(fault="personal_key_env names the environment variable KEYS, which is not set")
        with pytest.raises(ConfigurationError, match="KEYS, which is not set"):
            begin(DataFolder(data.path, keys))


class TestDifferences:
    """`diff` reads the raw tables of users, whatever they were written with."""

    @pytest.mark.parametrize("keys", [(None, KEY), (KEY, None), (KEY, KEY), (OTHER, KEY), (None, None)])
    def test_two_nights(self, data: DataFolder, keys: tuple[PersonalKey | None, PersonalKey | None]) -> None:
        """By content, whatever encrypts the files; no value is shown."""
        a = night(data, 1, 2, 3, key=keys[0])
        b = night(data, 2, 3, 4, key=keys[1], day=1)
        found = compare(folder(data, KEY, OTHER), a, b).resources["users"]
        assert (found.added, found.removed, found.changed, found.unchanged) == (1, 1, 0, 2)
        c = night(data, 2, 3, 4, key=keys[0], day=2, phone=2)
        changed = compare(folder(data, KEY, OTHER), b, c).resources["users"]
        assert changed.fields == {"phone": 3}
        assert MARK not in str(changed)

    def test_without_the_key(self, data: DataFolder) -> None:
        """A mistake of the configuration, told with its remedy."""
        a, b = night(data, 1), night(data, 1, day=1)
        for key in ([], [OTHER]):
            with pytest.raises(ConfigurationError, match=re.escape(f"users of {a.name} is encrypted")):
                compare(folder(data, *key), a, b)


class TestVerification:
    """`verify` proves what it can without the key, and says what it cannot."""

    def verify(self, data: DataFolder, *keys: PersonalKey) -> SnapshotVerification:
        """The newest snapshot, verified by somebody with these keys."""
        here = folder(data, *keys)
        [key] = keys_to_verify(here, None)
        return verify(here, key, now=NIGHT)

    def test_with_and_without_the_key(self, data: DataFolder) -> None:
        """Checksums and sizes need none; the rows do, and the result says so."""
        night(data, 1, 2)
        whole = self.verify(data, KEY)
        assert (whole.ok, whole.notes) == (True, [])
        for keys in ([], [OTHER]):
            part = self.verify(data, *keys)
            assert (part.ok, part.files, part.bytes) == (True, whole.files, whole.bytes)
            assert len(part.notes) == 3
            assert all("Its rows were not counted" in note and KEY.fingerprint in note for note in part.notes)

    @pytest.mark.parametrize("keys", [[], [KEY]])
    def test_a_flipped_bit_is_found_either_way(self, data: DataFolder, keys: list[PersonalKey]) -> None:
        """By the checksum."""
        file = night(data, 1, 2).path / "users.parquet"
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 4
        file.write_bytes(content)
        found = self.verify(data, *keys)
        assert [problem for problem in found.problems if f"{file} was changed" in problem]

    def test_wrong_rows_are_found_with_the_key(self, data: DataFolder) -> None:
        """The checksum is that of the file, and the manifest says another number."""
        capture = begin(folder(data, KEY))
        read(capture, people(1, 2), resource="users")
        capture.facts.tables["raw_users"].rows = 3
        staging.stage(capture, "users")
        folder(data, KEY).publish(capture, NIGHT)
        assert [one for one in self.verify(data, KEY).problems if "has 2 rows; the manifest says 3" in one]
        assert not [one for one in self.verify(data).problems if "has 2 rows" in one]


def test_every_kind_of_store(stored: DataFolder) -> None:
    """A folder, memory, a bucket: published, verified, compared and asked with the key; nothing of a person is in an object."""
    a, b = night(stored, 1, 2, 3), night(stored, 2, 3, 4, day=1)
    here = folder(stored, KEY)
    assert [verify(here, one.key, now=NIGHT).notes for one in (a, b)] == [[], []]
    assert len(verify(stored, b.key, now=NIGHT).notes) == 3
    found = compare(here, a, b).resources["users"]
    assert (found.added, found.removed, found.unchanged) == (1, 1, 2)
    asked = ask(stored, "SELECT email FROM users WHERE id = 4", KEY, personal=True)
    assert asked == [(f"person4@{MARK}.example",)]
    in_memory = [catalogue_in_memory(here, personal=personal) for personal in (True, False)]
    assert in_memory[0].execute("SELECT email FROM users WHERE id = 4").fetchall() == asked
    with pytest.raises(duckdb.Error, match='"email" not found'):
        in_memory[1].execute("SELECT email FROM users")
    with pytest.raises(duckdb.Error, match="is encrypted, because it is about people"):
        ask(stored, "SELECT id FROM users")
    contents = [stored.objects.read(entry.key) for entry in stored.objects.below("snapshots")]
    assert len(contents) == 8
    assert not [content for content in contents for word in (MARK, KEY.text) if word.encode() in content]
    assert files_with(stored, MARK) == []
