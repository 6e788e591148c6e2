"""Access: the analysts' role sees nothing personal, and a user with few rights can load."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa

from pipelines.errors import ConfigurationError
from pipelines.store.encryption import PersonalKeys
from pipelines.store.postgres.analysts import ROLE, ROLE_MISSING
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.conftest import Ask, library, library_snapshot
from tests.store.snapshot_factory import KEY

USER = {"id": 1, "email": "a@example.org", "name": "A", "roles": ["admin"], "phone": "1"}


@pytest.mark.long
def test_analysts_read_everything_that_is_not_personal(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Through the views over all libraries, after every load, even where default privileges would grant more."""
    ask(f"DO $$ BEGIN CREATE ROLE {ROLE} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    ask(f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {ROLE}")
    for day in range(2):
        postgres.load(data, library_snapshot(data, library(2, users=[USER]), day=day))
    ask(f"SET ROLE {ROLE}")
    assert ask("SELECT count(*) FROM publications_deleted") == [(0,)]
    assert ask("SELECT count(*) FROM publications_as_of('old', now())") == [(2,)]
    assert ask("SELECT id FROM users") == [(1,)]
    assert ask("SELECT count(*) FROM publications_history") == [(4,)]
    assert ask("SELECT count(DISTINCT snapshot_at) FROM users") == [(1,)]
    assert ask("SELECT count(*) FROM tables_read WHERE read AND table_name = 'users'") == [(2,)]
    tables = ("users", "users_history", "users_rows", "users_past")
    for personal in (f"{columns} FROM old.{table}" for table in tables for columns in ("name", "*")):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(f"SELECT {personal}")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        ask("SELECT email FROM users")
    ask("RESET ROLE")
    ask(f"GRANT USAGE ON SCHEMA old TO {ROLE}; SET ROLE {ROLE}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask("SELECT name FROM old.users")
    ask("RESET ROLE")
    assert ask("SELECT email, phone FROM old.users") == [("a@example.org", "1")]


def test_people_are_loaded_only_with_the_key(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Without it their tables are left out with a note, and stay as they are; the others are loaded. Changes are found with the key."""
    keyed = DataFolder(data.path, PersonalKeys([KEY]))
    nights = [
        library_snapshot(
            keyed, library(1, users=[{**USER, "name": name}], tasks=[{"id": 2, "assignee_id": 1}]), day=day
        )
        for day, name in enumerate(("A", "A", "Grace", "Ada"))
    ]
    locked = nights[0]
    staged = postgres.load(data, locked)
    assert [note.partition(":")[0] for note in staged.notes] == ["users, user_roles"]
    assert ask("SELECT resources FROM snapshots") == [("publications,tasks",)]
    assert (ask("SELECT count(*) FROM users"), ask("SELECT count(*) FROM tasks")) == ([(0,)], [(1,)])
    assert [postgres.load(keyed, night).written["users"] for night in nights[:3]] == [1, 0, 1]
    assert ask("SELECT email, name FROM old.users") == [("a@example.org", "Grace")]
    assert "users" not in postgres.load(data, nights[3]).tables
    assert ask("SELECT name FROM old.users") == [("Grace",)]


@pytest.fixture
def restricted(address: str, ask: Ask) -> Iterator[Database]:
    """The database of a user who may only connect."""
    database = sa.make_url(address).database
    name = f"modest_{database}"
    ask(f"CREATE ROLE {name} LOGIN")
    yield Database(sa.make_url(address).set(username=name).render_as_string(hide_password=False), seconds=5)
    ask(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_user_with_few_rights(data: DataFolder, restricted: Database, ask: Ask) -> None:
    """The message names the missing right to make schemas. The role of the analysts is created if the user may do so."""
    snapshot = library_snapshot(data)
    with pytest.raises(ConfigurationError, match=r"permission denied.*SQLSTATE 42501.*GRANT CREATE ON DATABASE"):
        restricted.load(data, snapshot)
    (database,) = ask("SELECT current_database()")[0]
    ask(f"GRANT CREATE ON DATABASE {database} TO modest_{database}")
    existed = bool(ask("SELECT 1 FROM pg_roles WHERE rolname = %s", ROLE))
    assert restricted.load(data, snapshot).notes == ([] if existed else [ROLE_MISSING])
    assert ask("SELECT count(*) FROM publications") == [(3,)]
