"""Which snapshots are staged after a backup, and which on request."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.backup.database import open_database, stage_again, stage_new
from pipelines.errors import ConfigurationError
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings
from pipelines.store.postgres.loading import Database, LoadResult
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.conftest import Ask, library, library_snapshot
from tests.variables import with_variables


def names(staged: list[LoadResult]) -> list[str]:
    """The loaded snapshots."""
    return [load.snapshot for load in staged]


@pytest.mark.long
def test_a_backup_loads_new_complete_snapshots(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """I4: a partial snapshot is never the newest one. A snapshot of some resources alone changes their tables only."""
    assert stage_new(postgres, data, "old") == []
    first = library_snapshot(data).manifest.snapshot
    assert names(stage_new(postgres, data, "old")) == [first]
    assert stage_new(postgres, data, "old") == []
    library_snapshot(data, day=1, complete=False)
    assert stage_new(postgres, data, "old") == []
    shelves = library_snapshot(
        data, {"locations": library(0, locations=[{"id": 1, "name": "Shelf"}])["locations"]}, day=2
    )
    assert names(stage_new(postgres, data, "old")) == [shelves.manifest.snapshot]
    assert ask("SELECT DISTINCT snapshot FROM publications") == [(first,)]
    assert ask("SELECT snapshot, resources FROM snapshots WHERE complete ORDER BY 1") == [
        (first, "publications"),
        (shelves.manifest.snapshot, "locations"),
    ]


def test_a_request_loads_the_newest_again_or_one_by_name_or_all_missing(data: DataFolder, postgres: Database) -> None:
    """An unknown name is an error that lists the snapshots."""
    with pytest.raises(ConfigurationError, match="'old' has no complete snapshot yet"):
        stage_again(postgres, data, "old")
    first, second, third = (library_snapshot(data, day=day).manifest.snapshot for day in range(3))
    assert names(stage_again(postgres, data, "old")) == names(stage_again(postgres, data, "old")) == [third]
    assert names(stage_again(postgres, data, "old", f"old/{first}")) == [first]
    assert names(stage_again(postgres, data, "old", history=True)) == [second]
    with pytest.raises(ConfigurationError, match=rf"'x' is no complete snapshot of 'old'.*{first}, {second}, {third}"):
        stage_again(postgres, data, "old", "x")


def settings(folder: Path, text: str) -> Settings:
    path = folder / "bookferry.toml"
    path.write_text(f'{text}\n[tenants.old]\nbase_url = "https://library.example.org"\napi = "v2"\n')
    return load_settings(path)


def test_tables_need_not_be_staged(tmp_path: Path) -> None:
    """Without a database, or with one for sign-ins only, staging is an error that says so."""
    named = 'postgres_env = "TEST_POSTGRES"'
    environ = {"TEST_POSTGRES": "postgresql://me:sesame-open@127.0.0.1:1/nothing"}
    assert settings(tmp_path, named).stages
    assert with_variables(environ, open_database, settings(tmp_path, named)).place == "postgresql://127.0.0.1:1/nothing"
    for text, why in (("", "names no database"), (f"{named}\n[postgres]\nload = false", "`load = false`")):
        assert not settings(tmp_path, text).stages
        with pytest.raises(ConfigurationError, match=why):
            with_variables(environ, open_database, settings(tmp_path, text))
    with pytest.raises(ConfigurationError, match="which is not set"):
        with_variables({}, open_database, settings(tmp_path, named))
    with pytest.raises(ConfigurationError, match=r"postgres\.schema: 'pg_x' is a schema of Postgres itself"):
        settings(tmp_path, '[postgres]\nschema = "pg_x"')
