"""What `bookferry doctor` and `status` say of Dagster: whether its scheduler runs, and how the last runs ended."""

from __future__ import annotations

import json
import os
import sqlite3
import warnings
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.code_location import dagster_folder
from cli.output import ago
from pipelines.doctor.checks import Check
from pipelines.doctor.findings import CheckResult, note, ok, problem, warning
from pipelines.doctor.look import Look
from pipelines.errors import ExitStatus
from pipelines.settings.postgres_address import PostgresAddress
from pipelines.settings.settings import Settings
from resources.run_tags import DATA, TENANT, data_address, loaded_configuration

if TYPE_CHECKING:
    import dagster as dg

ALIVE_SECONDS = 300
"""The daemon reports every thirty seconds. After so long without a report it is gone."""


def nightly_runs(look: Look) -> CheckResult:
    """The nightly backup is scheduled, for information only: cron or a systemd timer may do the same."""
    settings, tenant = look.settings, look.tenant
    home = dagster_folder(settings)
    if not (home / "dagster.yaml").is_file():
        return note(f"no run yet, and no scheduler: there is no Dagster instance in {home}", _RUN_IT, scheduler=None)
    if tenant in outdated_tenants(settings, datetime.now(UTC)):
        return problem(
            f"`bookferry ui` runs with an earlier {settings.path.name}, which has {tenant} not at all, or otherwise",
            f"{RESTART}.",
            exit_status=ExitStatus.USAGE,
            scheduler=True,
        )
    try:
        return _from_history(settings, home, tenant)
    except Exception as error:  # noqa: BLE001  Dagster's files may be of any version, or damaged
        return note(f"Dagster's history in {home} cannot be read ({type(error).__name__})", scheduler=None)


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


SELECTED_ASSETS = "__ASSET_JOB"
"""Dagster's name for the job of assets that a person selected in the pages. Of these runs only a backup names its library."""


class FailedRun(NamedTuple):
    """A run that failed. `done_again`: another run of the same job and library has ended well since."""

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


def failed_runs(settings: Settings, since: datetime) -> list[FailedRun] | None:
    """The runs on this data that have failed since then, oldest first; `None` where the history cannot be read."""
    if not dagster_folder(settings).exists():
        return []
    try:
        rows = [_EndedRun(*row) for row in _history(settings, _ENDED_RUNS)]
    except Exception:  # noqa: BLE001  as above
        return None
    ours = [
        row for row in rows if row.data == data_address(settings) or (not row.data and row.tenant in settings.tenants)
    ]
    done = {
        (row.job, row.tenant): row.ended for row in ours if row.status == "SUCCESS"
    }  # oldest first: the last one stays
    return [
        FailedRun(
            row.job,
            row.tenant or "",
            row.run,
            datetime.fromtimestamp(row.ended, UTC),
            done.get((row.job, row.tenant), 0.0) > row.ended,
        )
        for row in ours
        if row.status == "FAILURE" and row.ended >= since.timestamp()
    ]


class _EndedRun(NamedTuple):
    run: str
    job: str
    status: str
    ended: float
    tenant: str | None
    data: str | None


_ENDED_RUNS = f"""
SELECT * FROM (
    SELECT
        runs.run_id,
        CASE WHEN pipeline_name = '{SELECTED_ASSETS}' AND tenants.value IS NOT NULL THEN 'nightly_backup' ELSE pipeline_name END,
        status,
        end_time,
        tenants.value,
        places.value
    FROM runs
    LEFT JOIN run_tags tenants ON tenants.run_id = runs.run_id AND tenants.key = '{TENANT}'
    LEFT JOIN run_tags places ON places.run_id = runs.run_id AND places.key = '{DATA}'
    WHERE end_time IS NOT NULL ORDER BY end_time DESC LIMIT 2000
) ended ORDER BY end_time
"""  # noqa: S608  names of tags are constants


def _history(settings: Settings, query: str) -> list[tuple[Any, ...]]:
    """Rows of the tables of Dagster's history, in its file or in the database of its `dagster.yaml`. Dagster takes a second to import."""
    home = dagster_folder(settings)
    address = _history_address(home / "dagster.yaml")
    if address is None:
        with closing(
            sqlite3.connect(f"{(home / 'history' / 'runs.db').absolute().as_uri()}?mode=ro", uri=True)
        ) as history:
            return history.execute(query).fetchall()
    import psycopg  # noqa: PLC0415  most histories are in a file

    with psycopg.connect(address, connect_timeout=5) as connection:
        connection.read_only = True
        return connection.execute(query.encode()).fetchall()


def _history_address(instance: Path) -> str | None:
    """The address of a history in Postgres; None where it is in a file."""
    text = instance.read_text("utf-8") if instance.is_file() else ""
    if "storage" not in text:
        return None
    import yaml  # noqa: PLC0415  most histories are in a file
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    storage = (yaml.safe_load(text) or {}).get("storage")
    if storage is None:
        return None
    postgres = {
        name: os.environ[value["env"]] if isinstance(value, dict) and "env" in value else value
        for name, value in (storage["postgres"].get("postgres_db") or storage["postgres"]).items()
    }
    if "postgres_url" in postgres:
        return PostgresAddress.parse(str(postgres["postgres_url"])).conninfo
    names = {"username": "user", "password": "password", "hostname": "host", "db_name": "dbname", "port": "port"}
    return make_conninfo("", **{names[name]: value for name, value in postgres.items() if name in names})


def _from_history(settings: Settings, home: Path, tenant: str) -> CheckResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import dagster as dg  # noqa: PLC0415  takes longer than all other checks, so only if there is an instance
        from dagster._core.instance.ref import InstanceRef  # noqa: PLC0415

        ref = InstanceRef.from_dir(str(home))
        # By its name, without its package and its servers, which only the scheduler's machine may have
        launcher = ref.run_launcher_data.class_name if ref.run_launcher_data is not None else _ON_THIS_MACHINE[0]
        if launcher not in _ON_THIS_MACHINE and (settings.state == "local" or settings.bucket is None):
            return problem(
                f"Dagster's {launcher} may start the runs of a library on several machines, and what they must share is on this one",
                'Write `state = "postgres"`, and a bucket as `data`, into bookferry.toml: docs/operating.md, "Several machines".',
                exit_status=ExitStatus.USAGE,
                launcher=launcher,
            )
        with dg.DagsterInstance.from_ref(ref) as instance:
            return _check_result(_silent_seconds(instance), _last_run(instance, tenant), tenant)


def _silent_seconds(instance: dg.DagsterInstance) -> float | None:
    """Seconds since the last report of the scheduler; `None` if there was none."""
    status = instance.get_daemon_statuses().get("SCHEDULER")
    if status is None or status.last_heartbeat is None:
        return None
    return datetime.now(UTC).timestamp() - status.last_heartbeat.timestamp


def _last_run(instance: dg.DagsterInstance, tenant: str) -> tuple[str, float] | None:
    """Status of the tenant's last run, and how many seconds ago it began."""
    import dagster as dg  # noqa: PLC0415

    records = instance.get_run_records(dg.RunsFilter(tags={TENANT: tenant}), limit=1)
    if not records:
        return None
    began = datetime.now(UTC).timestamp() - records[0].create_timestamp.timestamp()
    return str(records[0].dagster_run.status.value), began


def _check_result(silent: float | None, last: tuple[str, float] | None, tenant: str) -> CheckResult:
    alive = silent is not None and silent < ALIVE_SECONDS
    scheduler = "the scheduler is running" if alive else "no scheduler is running"
    run = f"the last run {_ENDED.get(last[0], 'is under way')}, {ago(last[1])}" if last is not None else "no run yet"
    facts = {"scheduler": alive, "last_run": last[0] if last is not None else None}
    if last is not None and last[0] == "FAILURE":
        return warning(
            f"{run}; {scheduler}",
            f"`bookferry ui` shows why; `bookferry backup {tenant}` tries again.",
            **facts,
        )
    if not alive:
        return note(f"{scheduler}; {run}", _RUN_IT, **facts)
    return ok(f"{scheduler}; {run}", **facts)


_ENDED = {"SUCCESS": "ended well", "FAILURE": "FAILED", "CANCELED": "was stopped"}
