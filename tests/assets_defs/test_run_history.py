"""Dagster's history stays open during a run, and everything is in it."""

import sys
from pathlib import Path

import dagster as dg

from resources.run_history import history_kept_open

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
