"""The nightly job and its schedule."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.factories import cron, now_utc, tenant_key, tenants_job
from pipelines.settings.settings import Settings
from resources.run_tags import TENANT

MAX_SECONDS = 20 * 3600
"""A million records at 60 requests a minute take 5.6 hours. A run that takes more than 20 hours is dead or stuck."""

LATE = timedelta(hours=1)
"""After midnight, a backup of the day before may begin this long after its time: the scheduler evaluates once a minute."""

NIGHTLY_BACKUP = "nightly_backup"


def nightly_backup(settings: Settings) -> dg.Definitions:
    """The job that backs up every selected tenant, one after the other, in one process, and its schedule."""
    text = "Backs up libraries: reads, stages, proves and publishes a snapshot of each."
    job = tenants_job(NIGHTLY_BACKUP, SNAPSHOT, settings.tenants, text, MAX_SECONDS)
    return dg.Definitions(jobs=[job], schedules=[nightly_backup_schedule(settings)])


def nightly_backup_schedule(settings: Settings, now: Callable[[], datetime] = now_utc) -> dg.ScheduleDefinition:
    """One run for each tenant and night, so that a failure of one library does not affect another."""
    zone = ZoneInfo(settings.timezone)

    @dg.schedule(
        name="nightly_backup_schedule",
        job_name=NIGHTLY_BACKUP,
        cron_schedule=cron(settings, 0),
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Every night at {settings.nightly_at} ({settings.timezone}).",
    )
    def nightly_backup_schedule(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        night, moment = context.scheduled_execution_time.astimezone(zone), now()
        if night.date() < moment.astimezone(zone).date() and moment - night > LATE:
            # The scheduler catches up on missed nights, but a backup can only capture the present.
            yield dg.SkipReason(f"The night of {night:%Y-%m-%d} was missed. No backup can be made for it later.")
            return
        for name in settings.tenants:
            yield dg.RunRequest(
                run_key=f"{name} {night:%Y-%m-%dT%H:%M%z}",
                asset_selection=[tenant_key(name, SNAPSHOT)],
                tags={TENANT: name},
            )

    return nightly_backup_schedule
