"""Which snapshots are staged, after a backup and because somebody asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.backup.database import open_database, stage_again, stage_new
from pipelines.errors import ConfigurationError
from pipelines.settings.loading import load_settings
from pipelines.settings.settings import Settings
from pipelines.store.postgres.loading import Database, Staged
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.conftest import Ask, library, night


def names(staged: list[Staged]) -> list[str]:
    """The snapshots that were loaded."""
    return [one.snapshot for one in staged]


def test_a_backup_loads_what_is_new_and_no_partial_snapshot(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """I4: a partial snapshot is never the newest one. A snapshot of some resources alone changes their tables only."""
    assert stage_new(postgres, data, "old") == []
    first = night(data).manifest.snapshot
    assert names(stage_new(postgres, data, "old")) == [first]
    assert stage_new(postgres, data, "old") == []
    night(data, day=1, complete=False)
    assert stage_new(postgres, data, "old") == []
    shelves = night(data, {"locations": library(0, locations=[{"id": 1, "name": "Shelf"}])["locations"]}, day=2)
    assert names(stage_new(postgres, data, "old")) == [shelves.manifest.snapshot]
    assert ask("SELECT DISTINCT snapshot FROM publications") == [(first,)]
    assert ask("SELECT snapshot, resources FROM snapshots WHERE complete ORDER BY 1") == [
        (first, "publications"),
        (shelves.manifest.snapshot, "locations"),
    ]


def test_people_load_the_newest_again_or_one_by_name_or_all_that_is_missing(
    data: DataFolder, postgres: Database
) -> None:
    """What there is not is an error that says what there is."""
    with pytest.raises(ConfigurationError, match="'old' has no complete snapshot yet"):
        stage_again(postgres, data, "old")
    first, second, third = (night(data, day=day).manifest.snapshot for day in range(3))
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
    """Without a database, or where it is for sign-ins only."""
    named = 'postgres_env = "TEST_POSTGRES"'
    environ = {"TEST_POSTGRES": "postgresql://me:sesame-open@127.0.0.1:1/nothing"}
    assert settings(tmp_path, named).stages
    assert open_database(settings(tmp_path, named), environ).place == "postgresql://127.0.0.1:1/nothing"
    for text, why in (("", "names no database"), (f"{named}\n[postgres]\nload = false", "`load = false`")):
        assert not settings(tmp_path, text).stages
        with pytest.raises(ConfigurationError, match=why):
            open_database(settings(tmp_path, text), environ)
    with pytest.raises(ConfigurationError, match="which is not set"):
        open_database(settings(tmp_path, named), {})
    with pytest.raises(ConfigurationError, match=r"postgres\.schema: 'pg_x' is a schema of Postgres itself"):
        settings(tmp_path, '[postgres]\nschema = "pg_x"')
