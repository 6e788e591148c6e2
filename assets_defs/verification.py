"""The newest complete snapshot of every tenant, read again on a schedule of its own: what nobody reads rots unseen."""

from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from assets_defs.schedules import cron
from pipelines.library import Library
from pipelines.settings import Settings
from pipelines.store.verification import Part, Verification, verify_named

JOB = "verify_backups"

MAX_SECONDS = 20 * 3600
"""A library with many large files takes hours to read."""


def verification_job(settings: Settings) -> dg.JobDefinition:
    """Verifies all of a snapshot once a week; where it runs daily, a seventh of the stored files each day."""
    part = Part() if " " in settings.verify_at else Part(1, 7)

    @dg.op
    def verify_newest(context: dg.OpExecutionContext, library: dg.ResourceParam[Library]) -> None:
        results = verify_named(library.data, None, part, now=datetime.now(UTC))
        for result in results:
            context.log_event(_observation(result))
        _fail_if_damaged(results)

    @dg.job(
        name=JOB,
        description="Reads the newest complete snapshot of every library again, and fails when a file is not as it was published.",
        executor_def=dg.in_process_executor,
        tags={"dagster/max_retries": "0", "dagster/max_runtime": str(MAX_SECONDS)},
    )
    def verify_backups() -> None:
        verify_newest()

    return verify_backups


def verification_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """When the settings say: `sun 12:00`, or `12:00` for every day."""
    day, _, moment = settings.verify_at.rpartition(" ")
    return dg.ScheduleDefinition(
        name=f"{JOB}_schedule",
        job_name=JOB,
        cron_schedule=cron(moment, day.upper() or "*"),
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"At {settings.verify_at} ({settings.timezone}).",
    )


def _observation(result: Verification) -> dg.AssetObservation:
    """Shown beside the snapshot it is about."""
    return dg.AssetObservation(
        asset_key=[result.tenant, "snapshot"],
        metadata={
            "snapshot": result.snapshot,
            "intact": result.ok,
            "problems": result.problems,
            "files": result.files,
            "bytes": result.bytes,
            "blobs_read": result.blobs_read,
        },
    )


def _fail_if_damaged(results: Sequence[Verification]) -> None:
    problems = [problem for result in results for problem in result.problems]
    if problems:
        raise dg.Failure("\n".join(problems[:20]), metadata={"problems": problems}, allow_retries=False)
