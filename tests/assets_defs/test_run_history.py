"""Dagster's history stays open during a run, and everything is in it."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import dagster as dg
import sqlalchemy
from dagster._core.storage.event_log import SqliteEventLogStorage

from resources.run_history import history_kept_open, history_opened

_opened: list[str] = []


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "sqlite3.connect":
        _opened.append(str(arguments[0]))


sys.addaudithook(_note_opened)


@dg.asset
def counted() -> dg.MaterializeResult[None]:
    """An asset with something to note."""
    return dg.MaterializeResult(metadata={"records": 3})


def test_a_run_opens_each_database_of_its_history_a_few_times_and_closes_it(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, history_kept_open(instance):
        run = dg.materialize([counted], instance=instance)
        del _opened[:]
        again = dg.materialize([counted], instance=instance)
        opened = [name for name in _opened if "/history/runs/" in name]
    assert run.success
    assert again.success
    assert 0 < len(opened) <= 8, opened  # six times to create the database of the new run; 21 times without ours
    assert not list(tmp_path.rglob("history/runs/*-wal")), "a connection is still open"


def test_another_process_finds_all_events_of_the_run(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, history_kept_open(instance):
        run = dg.materialize([counted], instance=instance)
    with dg.DagsterInstance.local_temp(str(tmp_path)) as later:
        materialized = later.get_latest_materialization_event(counted.key)
        events = {entry.dagster_event_type for entry in later.all_logs(run.run_id) if entry.is_dagster_event}
    assert materialized is not None
    assert materialized.asset_materialization is not None
    assert materialized.asset_materialization.metadata["records"].value == 3
    assert {
        dg.DagsterEventType.RUN_START,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        dg.DagsterEventType.RUN_SUCCESS,
    } <= events


def test_a_new_history_has_the_tables_and_the_revision_that_dagster_gives_it(tmp_path: Path) -> None:
    def made(home: Path) -> dict[str, list[tuple[str]]]:
        places = sorted(home.rglob("*.db"))
        found = {}
        for number, place in enumerate(places):
            with closing(sqlite3.connect(place)) as database:
                revision = database.execute("SELECT version_num FROM alembic_version").fetchall()
                tables = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY sql").fetchall()
                mode = database.execute("PRAGMA journal_mode").fetchall()
            found[f"{place.parent.name} {number}"] = [*revision, *tables, *mode]
        return found

    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for home in (ours, theirs):
        home.mkdir()
    with history_opened(ours), dg.DagsterInstance.local_temp(str(ours)) as instance, history_kept_open(instance):
        run = dg.materialize([counted], instance=instance)
    with dg.DagsterInstance.local_temp(str(theirs)) as instance:
        dg.materialize([counted], instance=instance)
        storage = instance.event_log_storage
        assert isinstance(storage, SqliteEventLogStorage)
        _, head = storage.alembic_version() or (None, None)
    assert run.success
    assert made(ours) == made(theirs)
    assert all(tables[0] == (head,) for tables in made(ours).values())


def test_only_databases_of_the_history_wait_less_for_the_disk(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with history_opened(home):
        syncs = []
        for place in (home / "a.db", tmp_path / "other.db"):
            engine = sqlalchemy.create_engine(f"sqlite:///{place}")
            with engine.connect() as connection:
                syncs.append(connection.exec_driver_sql("PRAGMA synchronous").scalar())
            engine.dispose()
    assert syncs == [1, 2]  # NORMAL, FULL
