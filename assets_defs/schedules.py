"""The nightly job, and when it runs."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from assets_defs.backup import tenant_keys
from assets_defs.postgres import postgres_keys
from pipelines.backup.flow import tenant_resources
from pipelines.settings.settings import Settings

MAX_SECONDS = 20 * 3600
"""A million records at 60 requests a minute take 5.6 hours; a run that is not done after 20 is dead or stuck."""

LATE = timedelta(hours=1)
"""A backup may begin this long after the night it belongs to has turned into the next day: the scheduler looks once a minute."""

UPKEEP = ("bookferry/upkeep", "")
"""Tag of assets that belong to jobs of their own, not to the backup."""

NIGHTLY_BACKUP = dg.define_asset_job(
    "nightly_backup",
    selection=dg.AssetSelection.all() - dg.AssetSelection.tag(*UPKEEP),
    description="Backs libraries up: reads, stages, proves and publishes a snapshot of each.",
    executor_def=dg.in_process_executor,
    # Dagster's own retries would turn a person's "Terminate" into another try: our client retries, nothing else does.
    tags={"dagster/max_retries": "0", "dagster/max_runtime": str(MAX_SECONDS)},
)
"""Backs up every tenant it is given, one after the other, in one process."""


def _now() -> datetime:
    return datetime.now(UTC)


def cron(moment: str, day: str = "*") -> str:
    """The cron expression for a time of day, as the settings write it (`02:00`): every day, or on one day of the week (`SUN`)."""
    hour, minute = moment.split(":")
    return f"{int(minute)} {int(hour)} * * {day}"


def weekly_or_daily(moment: str, hours_later: int = 0) -> str:
    """The cron expression for `sun 12:00` or `12:00`, as the settings write it, or for so many hours later."""
    day, _, time = moment.rpartition(" ")
    hour, minute = map(int, time.split(":"))
    days_later, hour = divmod(hour + hours_later, 24)
    if day:
        day = _DAYS[(_DAYS.index(day.upper()) + days_later) % len(_DAYS)]
    return cron(f"{hour:02}:{minute:02}", day or "*")


_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def nightly_backup_schedule(settings: Settings, now: Callable[[], datetime] = _now) -> dg.ScheduleDefinition:
    """One run a tenant and night, so that one library's trouble is not another's."""
    zone = ZoneInfo(settings.timezone)

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
            # The scheduler catches up on missed nights; a backup can only capture the present.
            yield dg.SkipReason(f"The night of {night:%Y-%m-%d} was missed and cannot be made up for.")
            return
        for name, tenant in settings.tenants.items():
            yield dg.RunRequest(
                run_key=f"{name} {night:%Y-%m-%dT%H:%M%z}",
                asset_selection=[*tenant_keys(name, tenant_resources(tenant)), *postgres_keys(settings, name)],
                tags={"bookferry/tenant": name},
            )

    return nightly_backup_schedule
