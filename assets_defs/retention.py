"""Old snapshots are removed on a schedule of their own, as `[retention]` of bookferry.toml says; without that table nothing ever is."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import dagster as dg

from assets_defs.schedules import weekly_or_daily
from pipelines.backup.flow import Backup
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.retention import Policy, PruneResult, prune

JOB = "prune_backups"

MAX_SECONDS = 4 * 3600
"""Files are removed, and the names of those that stay are compared; nothing is read to the end."""


def retention_job(settings: Settings) -> list[dg.JobDefinition]:
    """The job that removes; none without a policy."""
    table = settings.retention
    if table is None:
        return []
    policy, zone = Policy.configured(table), ZoneInfo(settings.timezone)

    @dg.op
    def prune_snapshots(context: dg.OpExecutionContext, library: dg.ResourceParam[Backup]) -> None:
        done = prune(
            library.data, list(settings.tenants), policy, zone, tenant=None, dry_run=False, pass_over_busy=True
        )
        for note in done.notes:
            context.log.warning(note)
        for tenant in sorted({_tenant(one.snapshot) for one in done.kept}):
            context.log_event(_observation(tenant, done))
        context.add_output_metadata(
            {
                "removed": [one.snapshot for one in done.removed],
                "kept": {one.snapshot: ", ".join(one.why) for one in done.kept},
                "blobs_removed": done.blobs_removed,
                "bytes": done.bytes,
                "notes": done.notes,
            }
        )

    @dg.job(
        name=JOB,
        description="Removes the snapshots that [retention] does not keep, and the files that no other snapshot needs.",
        executor_def=dg.in_process_executor,
        tags={"dagster/max_retries": "0", "dagster/max_runtime": str(MAX_SECONDS)},
    )
    def prune_backups() -> None:
        prune_snapshots()

    return [prune_backups]


def retention_schedule(settings: Settings) -> Sequence[dg.ScheduleDefinition]:
    """When the table says: `sun 15:00`, or `15:00` for every day."""
    if settings.retention is None:
        return []
    return [
        dg.ScheduleDefinition(
            name=f"{JOB}_schedule",
            job_name=JOB,
            cron_schedule=weekly_or_daily(settings.retention.at),
            execution_timezone=settings.timezone,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=f"At {settings.retention.at} ({settings.timezone}).",
        )
    ]


def _tenant(snapshot: str) -> str:
    return snapshot.partition("/")[0]


def _observation(tenant: str, done: PruneResult) -> dg.AssetObservation:
    """Shown beside the snapshots it is about."""
    return dg.AssetObservation(
        asset_key=[tenant, "snapshot"],
        metadata={
            "removed": [one.snapshot for one in done.removed if _tenant(one.snapshot) == tenant],
            "kept": [one.snapshot for one in done.kept if _tenant(one.snapshot) == tenant],
        },
    )
