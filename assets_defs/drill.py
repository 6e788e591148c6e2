"""Restores the newest complete snapshot of every tenant into a sandbox, once a month, to prove that the backup can be restored."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.events import Result
from assets_defs.factories import after_backup, cron, job_schedule, tenant_key, tenants_job, upkeep_asset
from assets_defs.metadata import MOST_SHOWN, one_line_each
from pipelines.backup.flow import Backup
from pipelines.drill import drill
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.results import DrillResult

JOB = "drill_backups"
ASSET = "drill"
CHECK = "restorable"

MAX_SECONDS = 20 * 3600
"""A sandbox accepts some hundred records a second."""


def drills(settings: Settings) -> dg.Definitions:
    """An asset for each tenant, and the job of every first day of a month, sixteen hours after the nightly backup is due."""
    text = "Restores the newest complete snapshot of every library into a sandbox and reads it again. Fails when anything differs."
    return dg.Definitions(
        assets=[_drill_asset(tenant) for tenant in settings.tenants],
        jobs=[tenants_job(JOB, ASSET, settings.tenants, text, MAX_SECONDS)],
        schedules=[job_schedule(settings, JOB, cron(after_backup(settings, 16), day="1"))],
    )


def _drill_asset(tenant: str) -> dg.AssetsDefinition:
    @upkeep_asset(
        tenant,
        ASSET,
        kinds={"parquet"},
        pooled=False,
        made_from=[SNAPSHOT],
        checks={CHECK: "Every record and every byte can be restored."},
    )
    def restored(backup: dg.ResourceParam[Backup]) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
        """The last restore of the newest complete snapshot into a sandbox. Sends no request to the library."""
        snapshot = backup.data.find_snapshot(tenant)
        result = drill(backup.settings, backup.data, snapshot, now=datetime.now(UTC))
        yield from drill_results(tenant, result)
        if not result.ok:
            raise dg.Failure("\n".join(result.problems[:MOST_SHOWN]), metadata=_metadata(result), allow_retries=False)

    return restored


def drill_results(tenant: str, result: DrillResult) -> Iterator[Result]:
    """What a drill found, and that it was made where everything came back."""
    key, problems = tenant_key(tenant, ASSET), one_line_each(result.problems[:MOST_SHOWN])
    yield dg.AssetCheckResult(asset_key=key, check_name=CHECK, passed=result.ok, metadata={"problems": problems})
    if result.ok:
        yield dg.MaterializeResult(asset_key=key, metadata=_metadata(result))


def _metadata(result: DrillResult) -> dict[str, Any]:
    return {
        "snapshot": result.snapshot,
        "records": result.records,
        "files": result.files,
        "bytes": result.bytes,
        "seconds": result.seconds,
        "problems": one_line_each(result.problems[:MOST_SHOWN]),
    }
