"""Ends the runs whose process is gone: killed, or its machine restarted.

Dagster alone would take them for running until their time is up, keep the pool of their library for them, and tell nobody. A backup
holds the lease of its library from its first step to its end, and the kernel takes it back when the process dies.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets_defs.schedules import NIGHTLY_BACKUP
from pipelines.errors import BookferryError
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder

GONE = "bookferry/gone"
"""Tag of a run that was ended here: when."""

LOOK_SECONDS = 60
"""Between two looks. A run is ended when none of its leases is held at two of them: at its very end it has none, either."""

YOUNG = timedelta(minutes=10)
"""A run that began so recently may not have come to its first step."""

MESSAGE = (
    "The process of this run is gone: it was killed, or the machine was restarted. Nothing was published and the last good snapshot is "
    "untouched; the next backup of the same resources goes on from what was read."
)


def _now() -> datetime:
    return datetime.now(UTC)


def dead_runs(settings: Settings, now: Callable[[], datetime] = _now) -> dg.SensorDefinition:
    """Looks every minute at the backups that Dagster takes for running."""

    @dg.sensor(
        name="dead_runs",
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Ends backups whose process is gone, so that they are told as failed. Sends no request.",
    )
    def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        before = set((context.cursor or "").split())
        idle = [run for run in _running(context.instance, now() - YOUNG) if _is_idle(settings, run)]
        dead = [run for run in idle if run.run_id in before]
        for run in dead:
            context.instance.add_run_tags(run.run_id, {GONE: now().isoformat(timespec="seconds")})
            context.instance.report_run_failed(run, MESSAGE)
        context.update_cursor(" ".join(run.run_id for run in idle if run not in dead))
        return dg.SkipReason(f"Ended: {', '.join(run.run_id for run in dead)}." if dead else "No run is dead.")

    return dead_runs


def _running(instance: dg.DagsterInstance, begun_before: datetime) -> list[dg.DagsterRun]:
    """The backups in one process that began before then; one of several processes has no lease between two of them."""
    wanted = dg.RunsFilter(job_name=NIGHTLY_BACKUP.name, statuses=[dg.DagsterRunStatus.STARTED])
    records = instance.get_run_records(wanted)
    return [one.dagster_run for one in records if _began(one) < begun_before.timestamp()]


def _began(record: dg.RunRecord) -> float:
    return record.start_time or record.create_timestamp.timestamp()


def _is_idle(settings: Settings, run: dg.DagsterRun) -> bool:
    """Whether nobody holds a lease of the libraries that this run is for."""
    of_run = {key.path[0] for key in run.asset_selection or ()} or set(settings.tenants)
    return not any(_is_held(settings, tenant) for tenant in of_run.intersection(settings.tenants))


def _is_held(settings: Settings, tenant: str) -> bool:
    try:
        with DataFolder(settings.data).lease(tenant):
            return False
    except BookferryError:  # somebody holds it, or nobody can know
        return True
