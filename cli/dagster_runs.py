"""Dagster's scheduler and its last runs, as `status` and `doctor` see them. Dagster itself is not imported for it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cli.dagster_instance import dagster_folder
from pipelines.settings.postgres_address import PostgresAddress
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import Snapshot
from resources.run_tags import DATA, TENANT, data_address, loaded_configuration

ALIVE_SECONDS = 300
"""The daemon reports every thirty seconds. After so long without a report it is gone."""


def outdated_tenants(settings: Settings, now: datetime) -> list[str]:
    """The tenants that a running scheduler does not know as bookferry.toml has them now: added, changed or removed since it was loaded."""
    key = loaded_configuration(settings).replace("'", "''")
    try:
        [(note,)] = _history(settings, f"SELECT value FROM kvs WHERE key = '{key}'")  # noqa: S608  quoted
        loaded = json.loads(note)
        if (now - datetime.fromisoformat(loaded["at"])).total_seconds() >= ALIVE_SECONDS:
            return []
    except Exception:  # noqa: BLE001  no history, none that can be read, or no such note in it
        return []
    current = settings.fingerprints
    return [name for name in {**current, **loaded["tenants"]} if current.get(name) != loaded["tenants"].get(name)]


RESTART = "Restart `bookferry ui`"

BACKUP_JOB = "nightly_backup"

SELECTED_ASSETS = "__ASSET_JOB"
"""Dagster's name for the job of assets that a person selected in the pages. Of these runs only a backup names its library."""

MATERIALIZE = "Materialize"
"""The button that starts such a run."""


class FailedRun(NamedTuple):
    """A run that failed."""

    job: str
    tenant: str
    run: str
    ended_at: datetime


def scheduler_runs(settings: Settings, now: datetime) -> bool | None:
    """Whether the scheduler of Dagster runs; `None` where its reports cannot be read."""
    if not dagster_folder(settings).exists():
        return False
    try:
        rows = _history(settings, "SELECT timestamp FROM daemon_heartbeats WHERE daemon_type = 'SCHEDULER'")
        reports = [datetime.fromisoformat(str(moment)).replace(tzinfo=UTC) for (moment,) in rows]
    except Exception:  # noqa: BLE001  the tables are Dagster's own business: any surprise means unknown
        return None
    return any((now - moment).total_seconds() < ALIVE_SECONDS for moment in reports)


def failed_runs(settings: Settings, since: datetime, backups: Mapping[str, Snapshot]) -> list[FailedRun] | None:
    """The newest run of each job and library that has failed since then, and was not done again; `None` where the history cannot be read.

    Another run of the same job and library does it again, and so does a backup by the command line. `backups`: tenant → its newest complete
    one, whoever made that.
    """
    if not dagster_folder(settings).exists():
        return []
    try:
        rows = _history(settings, _ENDED_RUNS)
    except Exception:  # noqa: BLE001  as above
        return None
    backed_up = {tenant: datetime.fromisoformat(backup.manifest.finished_at) for tenant, backup in backups.items()}
    failed: dict[tuple[str, str | None], FailedRun] = {}
    for run, job, tenant, data, is_good, ended in rows:
        work = BACKUP_JOB if tenant and job == MATERIALIZE else job
        if data == data_address(settings) or (not data and tenant in settings.tenants):
            moment = datetime.fromtimestamp(ended, UTC)
            done_at = backed_up.get(tenant, since) if work == BACKUP_JOB else since
            if is_good:
                failed.pop((work, tenant), None)
            elif moment >= max(since, done_at):
                failed[work, tenant] = FailedRun(job, tenant or "", run, moment)
    return sorted(failed.values(), key=lambda run: run.ended_at)


_ENDED_RUNS = f"""
SELECT * FROM (
    SELECT
        runs.run_id,
        CASE WHEN pipeline_name = '{SELECTED_ASSETS}' THEN '{MATERIALIZE}' ELSE pipeline_name END,
        tenants.value,
        places.value,
        status = 'SUCCESS',
        end_time
    FROM runs
    LEFT JOIN run_tags tenants ON tenants.run_id = runs.run_id AND tenants.key = '{TENANT}'
    LEFT JOIN run_tags places ON places.run_id = runs.run_id AND places.key = '{DATA}'
    WHERE status IN ('SUCCESS', 'FAILURE') AND end_time IS NOT NULL
    ORDER BY end_time DESC LIMIT 2000
) newest ORDER BY end_time
"""  # noqa: S608  names of tags are constants
"""The newest runs that have ended, oldest first."""


def _history(settings: Settings, query: str) -> list[tuple[Any, ...]]:
    """Rows of the tables of Dagster's history, in its file or in the database of its `dagster.yaml`. Dagster takes a second to import."""
    home = dagster_folder(settings)
    address = _history_address(home)
    if address is None:
        with closing(
            sqlite3.connect(f"{(home / 'history' / 'runs.db').absolute().as_uri()}?mode=ro", uri=True)
        ) as history:
            return history.execute(query).fetchall()
    import psycopg  # noqa: PLC0415  most histories are in a file

    with psycopg.connect(address, connect_timeout=5) as connection:
        connection.read_only = True
        return connection.execute(query.encode()).fetchall()


def dagster_setting(home: Path, name: str) -> dict[str, Any]:
    """A table of Dagster's settings; empty where `dagster.yaml` has none of this name, or cannot be read."""
    with suppress(Exception):  # the file is another program's
        text = (home / "dagster.yaml").read_text("utf-8")
        if name in text:
            import yaml  # noqa: PLC0415  most instances are as Bookferry wrote them

            return yaml.safe_load(text).get(name) or {}
    return {}


def _history_address(home: Path) -> str | None:
    """The address of a history in Postgres; None where it is in a file."""
    storage = dagster_setting(home, "storage")
    if not storage:
        return None
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415  most histories are in a file

    postgres = {
        name: os.environ[value["env"]] if isinstance(value, dict) and "env" in value else value
        for name, value in (storage["postgres"].get("postgres_db") or storage["postgres"]).items()
    }
    if "postgres_url" in postgres:
        return PostgresAddress.parse(str(postgres["postgres_url"])).conninfo
    names = {"username": "user", "password": "password", "hostname": "host", "db_name": "dbname", "port": "port"}
    return make_conninfo("", **{names[name]: value for name, value in postgres.items() if name in names})
