"""What `bookferry doctor` and `status` say of Dagster: whether its scheduler runs, and how the last runs ended."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cli.dagster_instance import dagster_folder
from cli.output import ago
from pipelines.doctor.checks import Check
from pipelines.doctor.findings import CheckResult, note, ok, problem, warning
from pipelines.doctor.look import Look
from pipelines.errors import ExitStatus
from pipelines.settings.postgres_address import PostgresAddress
from pipelines.settings.settings import Settings
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.snapshots import Snapshot, newest_complete
from pipelines.store.stores import open_data
from resources.run_tags import DATA, TENANT, data_address, loaded_configuration

ALIVE_SECONDS = 300
"""The daemon reports every thirty seconds. After so long without a report it is gone."""


def nightly_runs(look: Look) -> CheckResult:
    """The nightly backup is scheduled, for information only: cron or a systemd timer may do the same."""
    settings, tenant = look.settings, look.tenant
    home, now = dagster_folder(settings), datetime.now(UTC)
    if not (home / "dagster.yaml").is_file():
        return note(f"no scheduler: there is no Dagster instance in {home}", _RUN_IT, scheduler=None)
    if tenant in outdated_tenants(settings, now):
        return problem(
            f"`bookferry ui` runs with an earlier {settings.path.name}, which has {tenant} not at all, or otherwise",
            f"{RESTART}.",
            exit_status=ExitStatus.USAGE,
            scheduler=True,
        )
    try:
        launcher = _instance_setting(home, "run_launcher").get("class", _ON_THIS_MACHINE[0])
        if launcher not in _ON_THIS_MACHINE and (settings.state == "local" or settings.bucket is None):
            return problem(
                f"Dagster's {launcher} may start the runs of a library on several machines, and what they must share is on this one",
                'Write `state = "postgres"`, and a bucket as `data`, into bookferry.toml: docs/operating.md, "Several machines".',
                exit_status=ExitStatus.USAGE,
                launcher=launcher,
            )
        last = next((run for run in reversed(_own_runs(settings)) if run.tenant == tenant), None)
        newest = newest_complete(open_data(settings, personal_keys(settings)).snapshots(tenant))
        alive = bool(scheduler_runs(settings, now))
    except Exception as error:  # noqa: BLE001  Dagster's files may be of any version, or damaged
        return note(f"Dagster's history in {home} cannot be read ({type(error).__name__})", scheduler=None)
    return _check_result(last, newest, tenant, now, alive=alive)


NIGHTLY = Check("nightly", nightly_runs)
"""A check of `doctor`; it is here because pipelines know nothing of Dagster."""


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

_ON_THIS_MACHINE = ("DefaultRunLauncher", "SyncInMemoryRunLauncher")
"""Launchers whose runs are on the machine of the code location."""

_RUN_IT = (
    "`bookferry ui` runs the nightly backup while it is up; so does `bookferry nightly` from cron or a systemd timer."
)


BACKUP_JOB = "nightly_backup"

SELECTED_ASSETS = "__ASSET_JOB"
"""Dagster's name for the job of assets that a person selected in the pages. Of these runs only a backup names its library."""


class FailedRun(NamedTuple):
    """A run that failed. `done_again`: another run of the same job and library, or a backup by the command line, has ended well since."""

    job: str
    tenant: str
    run: str
    ended_at: datetime
    done_again: bool


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


def failed_runs(
    settings: Settings, since: datetime, backed_up: Mapping[str, datetime] = MappingProxyType({})
) -> list[FailedRun] | None:
    """The runs on this data that have failed since then, oldest first; `None` where the history cannot be read.

    `backed_up`: tenant → end of its newest complete backup, whoever made that.
    """
    if not dagster_folder(settings).exists():
        return []
    try:
        ended = sorted((run for run in _own_runs(settings) if run.ended is not None), key=lambda run: run.ended or 0.0)
    except Exception:  # noqa: BLE001  as above
        return None
    done = {(BACKUP_JOB, tenant): moment.timestamp() for tenant, moment in backed_up.items()}
    for run in ended:
        if run.status == "SUCCESS":
            done[run.job, run.tenant] = max(run.ended or 0.0, done.get((run.job, run.tenant), 0.0))
    return [
        FailedRun(
            run.job,
            run.tenant,
            run.id,
            datetime.fromtimestamp(run.ended, UTC),
            done.get((run.job, run.tenant), 0.0) > run.ended,
        )
        for run in ended
        if run.status == "FAILURE" and run.ended is not None and run.ended >= since.timestamp()
    ]


class _Run(NamedTuple):
    """A run of Dagster. `ended`: seconds since 1970, if it has."""

    id: str
    job: str
    status: str
    began: datetime
    ended: float | None
    tenant: str


def _own_runs(settings: Settings) -> list[_Run]:
    """The newest runs on this data, oldest first."""
    return [
        _Run(run, job, status, datetime.fromisoformat(str(created)).replace(tzinfo=UTC), ended, tenant or "")
        for run, job, status, created, ended, tenant, data in reversed(_history(settings, _RUNS))
        if data == data_address(settings) or (not data and tenant in settings.tenants)
    ]


_RUNS = f"""
SELECT
    runs.run_id,
    CASE WHEN pipeline_name = '{SELECTED_ASSETS}' AND tenants.value IS NOT NULL THEN '{BACKUP_JOB}' ELSE pipeline_name END,
    status,
    create_timestamp,
    end_time,
    tenants.value,
    places.value
FROM runs
LEFT JOIN run_tags tenants ON tenants.run_id = runs.run_id AND tenants.key = '{TENANT}'
LEFT JOIN run_tags places ON places.run_id = runs.run_id AND places.key = '{DATA}'
ORDER BY create_timestamp DESC LIMIT 2000
"""  # noqa: S608  names of tags are constants


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


def _instance_setting(home: Path, name: str) -> dict[str, Any]:
    """A table of Dagster's settings; empty where `dagster.yaml` has none of this name."""
    text = (home / "dagster.yaml").read_text("utf-8") if (home / "dagster.yaml").is_file() else ""
    if name not in text:
        return {}
    import yaml  # noqa: PLC0415  most instances are as Bookferry wrote them

    return (yaml.safe_load(text) or {}).get(name) or {}


def _history_address(home: Path) -> str | None:
    """The address of a history in Postgres; None where it is in a file."""
    storage = _instance_setting(home, "storage")
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


def _check_result(
    last: _Run | None, newest: Snapshot | None, tenant: str, now: datetime, *, alive: bool
) -> CheckResult:
    scheduler = "the scheduler is running" if alive else "no scheduler is running"
    facts = {"scheduler": alive, "last_run": last.status if last is not None else None}
    run = "Dagster has run no backup yet"
    if last is not None:
        run = f"Dagster's last run {_ENDED.get(last.status, 'is under way')}, {ago((now - last.began).total_seconds())}"
        if last.status == "FAILURE":
            if newest is None or datetime.fromisoformat(newest.manifest.finished_at) < last.began:
                todo = f"`bookferry ui` shows why; `bookferry backup {tenant}` tries again."
                return warning(f"{run}; {scheduler}", todo, **facts)
            run += ", and a backup succeeded since"
    if not alive:
        return note(f"{scheduler}; {run}", _RUN_IT, **facts)
    return ok(f"{scheduler}; {run}", **facts)


_ENDED = {"SUCCESS": "ended well", "FAILURE": "FAILED", "CANCELED": "was stopped"}
