"""The newest complete snapshot of every tenant, read again on a schedule of its own: what nobody reads rots unseen.

An asset for each tenant, so that the age of the last verification that found nothing is seen like that of the backup.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets_defs.freshness import verification_freshness
from assets_defs.metadata import MOST_SHOWN
from assets_defs.schedules import UPKEEP, weekly_or_daily
from pipelines.backup.flow import Backup
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.verification import Part, SnapshotVerification, verify_named

JOB = "verify_backups"
ASSET = "verification"
CHECK = "intact"

MAX_SECONDS = 20 * 3600
"""A library with many large files takes hours to read."""


def verification_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """One for each tenant."""
    return [_verification_asset(settings, tenant) for tenant in settings.tenants]


def verification_job(settings: Settings) -> Any:
    """Verifies all of a snapshot once a week; where it runs daily, a seventh of the stored files each day."""
    return dg.define_asset_job(
        JOB,
        selection=dg.AssetSelection.assets(*(_key(tenant) for tenant in settings.tenants)),
        description="Reads the newest complete snapshot of every library again, and fails when a file is not as it was published.",
        executor_def=dg.in_process_executor,
        tags={"dagster/max_retries": "0", "dagster/max_runtime": str(MAX_SECONDS)},
    )


def verification_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """When the settings say: `sun 12:00`, or `12:00` for every day."""
    return dg.ScheduleDefinition(
        name=f"{JOB}_schedule",
        job_name=JOB,
        cron_schedule=weekly_or_daily(settings.verify_at),
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"At {settings.verify_at} ({settings.timezone}).",
    )


def _key(tenant: str) -> dg.AssetKey:
    return dg.AssetKey([tenant, ASSET])


def _verification_asset(settings: Settings, tenant: str) -> dg.AssetsDefinition:
    part = Part() if " " in settings.verify_at else Part(1, 7)

    @dg.asset(
        key=_key(tenant),
        group_name=tenant,
        kinds={"parquet"},
        tags=dict([UPKEEP]),
        deps=[dg.AssetKey([tenant, "snapshot"])],
        freshness_policy=verification_freshness(settings),
        check_specs=[
            dg.AssetCheckSpec(CHECK, asset=_key(tenant), description="Every file is as it was published (I4, I12).")
        ],
    )
    def verification(
        context: dg.AssetExecutionContext, library: dg.ResourceParam[Backup]
    ) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
        """The last look at the newest complete snapshot that found every file as it was published. Asks the library for nothing."""
        results = verify_named(library.data, tenant, part, now=datetime.now(UTC))
        for result in results:
            context.log_event(dg.AssetObservation(asset_key=[tenant, "snapshot"], metadata=_metadata(result)))
        problems = [problem for result in results for problem in result.problems[:MOST_SHOWN]]
        yield dg.AssetCheckResult(check_name=CHECK, passed=not problems, metadata={"problems": problems})
        if problems:
            raise dg.Failure("\n".join(problems[:MOST_SHOWN]), metadata={"problems": problems}, allow_retries=False)
        yield dg.MaterializeResult(metadata=_metadata(results[-1]))

    return verification


def _metadata(result: SnapshotVerification) -> dict[str, Any]:
    return {
        "snapshot": result.snapshot,
        "intact": result.ok,
        "problems": result.problems[:MOST_SHOWN],
        "notes": result.notes,
        "files": result.files,
        "bytes": result.bytes,
        "blobs_read": result.blobs_read,
        "read_data": result.read_data,
    }
