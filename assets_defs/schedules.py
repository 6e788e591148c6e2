"""The nightly job with its assets and its schedule."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from assets_defs.backup import backup_keys, tenant_assets
from assets_defs.factories import UPKEEP, cron, now_utc, run_settings, with_owners
from assets_defs.files import file_assets
from assets_defs.freshness import backup_freshness, freshness_checks
from assets_defs.report import report_assets
from assets_defs.staging import staging_assets, staging_keys
from pipelines.backup.flow import Backup, nightly_resources
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


def library_assets(settings: Settings, tenant: str, resources: Sequence[str]) -> list[dg.AssetsDefinition]:
    """The assets of one tenant's backup of some resources, with its files and its report."""
    return [
        *tenant_assets(tenant, resources, backup_freshness(settings)),
        *file_assets(tenant, resources),
        *report_assets(tenant, resources),
    ]


def nightly_backup_of(settings: Settings, backup: Backup, tenant: str, resources: Sequence[str]) -> dg.JobDefinition:
    """The nightly job for one tenant, without what a backup does not run: a small one takes less time than to import and make that.

    `resources`: those that a person named, in addition to the nightly ones.
    """
    alone = replace(settings, tenants={tenant: settings.tenant(tenant)})
    defined = [*dict.fromkeys([*nightly_resources(settings, tenant), *resources])]
    definitions = dg.Definitions(
        assets=with_owners(alone, [*library_assets(alone, tenant, defined), *staging_assets(alone)]),
        asset_checks=freshness_checks(alone),
        executor=dg.in_process_executor,
        jobs=[NIGHTLY_BACKUP],
        resources={"backup": backup},
    )
    return definitions.resolve_job_def(NIGHTLY_BACKUP.name)


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
