"""The nightly job with its schedule, and cron expressions for the times of the settings."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from assets_defs.backup import backup_keys
from assets_defs.factories import UPKEEP, run_settings
from assets_defs.staging import staging_keys
from pipelines.backup.flow import nightly_resources
from pipelines.settings.settings import Settings
from resources.run_tags import TENANT

MAX_SECONDS = 20 * 3600
"""A million records at 60 requests a minute take 5.6 hours. A run that takes more than 20 hours is dead or stuck."""

LATE = timedelta(hours=1)
"""After midnight, a backup of the day before may begin this long after its time: the scheduler evaluates once a minute."""

NIGHTLY_BACKUP = dg.define_asset_job(
    "nightly_backup",
    selection=dg.AssetSelection.all() - dg.AssetSelection.tag(*next(iter(UPKEEP.items()))),
    description="Backs up libraries: reads, stages, proves and publishes a snapshot of each.",
    **run_settings(MAX_SECONDS),
)
"""Backs up every selected tenant, one after the other, in one process."""


def now_utc() -> datetime:
    """The present, for sensors and schedules; tests pass another function."""
    return datetime.now(UTC)


def cron(moment: str, day: str = "*") -> str:
    """The cron expression for a time such as `02:00`, every day or on one day of the week (`SUN`)."""
    hour, minute = moment.split(":")
    return f"{int(minute)} {int(hour)} * * {day}"


def weekly_or_daily(moment: str, hours_later: int = 0) -> str:
    """The cron expression for `sun 12:00` (weekly) or `12:00` (daily), or for so many hours later."""
    day, _, time = moment.rpartition(" ")
    hour, minute = map(int, time.split(":"))
    days_later, hour = divmod(hour + hours_later, 24)
    if day:
        day = _DAYS[(_DAYS.index(day.upper()) + days_later) % len(_DAYS)]
    return cron(f"{hour:02}:{minute:02}", day or "*")


_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def nightly_backup_schedule(settings: Settings, now: Callable[[], datetime] = now_utc) -> dg.ScheduleDefinition:
    """One run for each tenant and night, so that a failure of one library does not affect another."""
    zone = ZoneInfo(settings.timezone)
    resources = {name: nightly_resources(settings, name) for name in settings.tenants}  # those that have assets

    @dg.schedule(
        name="nightly_backup_schedule",
        job=NIGHTLY_BACKUP,
        cron_schedule=cron(settings.nightly_at),
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
                asset_selection=[*backup_keys(name, resources[name]), *staging_keys(settings, name)],
                tags={TENANT: name},
            )

    return nightly_backup_schedule
