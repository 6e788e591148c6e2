"""Ends the runs whose process is gone: it was killed, or the machine restarted.

Dagster alone would show them as running until `dagster/max_runtime`, block their library's pool, and send no notification. A backup holds
the lease of its library from its first step to its end; the kernel releases the lease when the process dies.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import dagster as dg

from assets_defs.schedules import NIGHTLY_BACKUP, now_utc
from pipelines.errors import BookferryError
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from resources.run_tags import ENDED_AS_DEAD

SENSOR_SECONDS = 60
"""Between two evaluations. A run is ended after two in which it has no lease: a run that is just ending has none, either."""

STARTUP_TIME = timedelta(minutes=10)
"""A run that began so recently may not have reached its first step."""

MESSAGE = (
    "The process of this run is gone: it was killed, or the machine was restarted. Nothing was published and the last good snapshot is "
    "untouched. The next backup of the same resources resumes where this one ended."
)


def dead_runs(settings: Settings, now: Callable[[], datetime] = now_utc) -> dg.SensorDefinition:
    """A sensor that checks every minute the backups that Dagster shows as running."""

    @dg.sensor(
        name="dead_runs",
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Ends backups whose process is gone, so that they are reported as failed. Sends no request.",
    )
    def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        before = set((context.cursor or "").split())
        idle = [run for run in _running(context.instance, now() - STARTUP_TIME) if _is_idle(settings, run)]
        dead = [run for run in idle if run.run_id in before]
        for run in dead:
            context.instance.add_run_tags(run.run_id, {ENDED_AS_DEAD: now().isoformat(timespec="seconds")})
            context.instance.report_run_failed(run, MESSAGE)
        context.update_cursor(" ".join(run.run_id for run in idle if run not in dead))
        return dg.SkipReason(f"Ended: {', '.join(run.run_id for run in dead)}." if dead else "No run is dead.")

    return dead_runs


def _running(instance: dg.DagsterInstance, begun_before: datetime) -> list[dg.DagsterRun]:
    """The backups that began before then, of the job that runs in one process: runs in several processes have no lease between two."""
    started = dg.RunsFilter(job_name=NIGHTLY_BACKUP.name, statuses=[dg.DagsterRunStatus.STARTED])
    records = instance.get_run_records(started)
    return [record.dagster_run for record in records if _began(record) < begun_before.timestamp()]


def _began(record: dg.RunRecord) -> float:
    return record.start_time or record.create_timestamp.timestamp()


def _is_idle(settings: Settings, run: dg.DagsterRun) -> bool:
    """Whether no process holds a lease of the libraries that this run is for."""
    tenants = {key.path[0] for key in run.asset_selection or ()} or set(settings.tenants)
    return not any(_is_leased(settings, tenant) for tenant in tenants.intersection(settings.tenants))


def _is_leased(settings: Settings, tenant: str) -> bool:
    try:
        with DataFolder(settings.data).lease(tenant):
            return False
    except BookferryError:  # a process holds it, or it cannot be known
        return True
