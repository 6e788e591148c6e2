"""Restores the newest complete snapshot of every tenant into a sandbox, once a month, to prove that the backup can be restored."""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.events import Result, failing, proof_results
from assets_defs.factories import job_schedule, tenant_key, tenants_job, upkeep_asset
from assets_defs.metadata import single_values
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
        schedules=[job_schedule(settings, JOB, 16, day="1")],
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
    def restored(backup: dg.ResourceParam[Backup]) -> Iterator[Result]:
        """The last restore of the newest complete snapshot into a sandbox. Sends no request to the library."""
        snapshot = backup.data.find_snapshot(tenant)
        result = drill(backup.settings, backup.data, snapshot, now=datetime.now(UTC))
        yield from failing(drill_results(tenant, result))

    return restored


def drill_results(tenant: str, result: DrillResult) -> Iterator[Result]:
    """What a drill found, and that it was made where everything came back but what it left out."""
    metadata = single_values(result)
    return proof_results(tenant_key(tenant, ASSET), CHECK, result.problems, metadata, in_part=result.ok)
