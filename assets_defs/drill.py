"""The newest complete snapshot of every tenant, put back into a sandbox once a month: a backup that nobody restored is a hope."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets_defs.metadata import MOST_SHOWN
from assets_defs.schedules import UPKEEP
from pipelines.backup.flow import Backup
from pipelines.drill import drill
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.drills import Drill

JOB = "drill_backups"
ASSET = "drill"
CHECK = "restorable"

MAX_SECONDS = 20 * 3600
"""A sandbox takes some hundred records a second."""


def drill_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """One for each tenant."""
    return [_drill_asset(tenant) for tenant in settings.tenants]


def drill_job(settings: Settings) -> Any:
    """Restores the newest complete snapshot of every tenant into a sandbox of its own, and reads it back."""
    return dg.define_asset_job(
        JOB,
        selection=dg.AssetSelection.assets(*(dg.AssetKey([tenant, ASSET]) for tenant in settings.tenants)),
        description="Restores the newest complete snapshot of every library into a sandbox, and fails unless it reads the same.",
        executor_def=dg.in_process_executor,
        tags={"dagster/max_retries": "0", "dagster/max_runtime": str(MAX_SECONDS)},
    )


def drill_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """When the settings say: `1 18:00` is the first day of every month."""
    day, _, time = settings.drill_at.partition(" ")
    hour, minute = map(int, time.split(":"))
    return dg.ScheduleDefinition(
        name=f"{JOB}_schedule",
        job_name=JOB,
        cron_schedule=f"{minute} {hour} {day} * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"On day {day} of every month at {time} ({settings.timezone}).",
    )


def _drill_asset(tenant: str) -> dg.AssetsDefinition:
    key = dg.AssetKey([tenant, ASSET])

    @dg.asset(
        key=key,
        group_name=tenant,
        kinds={"parquet"},
        tags=dict([UPKEEP]),
        deps=[dg.AssetKey([tenant, "snapshot"])],
        check_specs=[
            dg.AssetCheckSpec(CHECK, asset=key, description="Every record and every byte can be put back (B1, I12).")
        ],
    )
    def restored(library: dg.ResourceParam[Backup]) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
        """The last restore of the newest complete snapshot into a sandbox. Asks the library for nothing."""
        snapshot = library.data.find_snapshot(tenant)
        found = drill(library.settings, library.data, snapshot, now=datetime.now(UTC))
        yield dg.AssetCheckResult(check_name=CHECK, passed=found.ok, metadata={"problems": found.problems[:MOST_SHOWN]})
        if not found.ok:
            problems = "\n".join(found.problems[:MOST_SHOWN])
            raise dg.Failure(problems, metadata=_metadata(found), allow_retries=False)
        yield dg.MaterializeResult(metadata=_metadata(found))

    return restored


def _metadata(found: Drill) -> dict[str, Any]:
    return {
        "snapshot": found.snapshot,
        "records": found.records,
        "files": found.files,
        "bytes": found.bytes,
        "seconds": found.seconds,
        "problems": found.problems[:MOST_SHOWN],
    }
