"""Removes old snapshots on a schedule, as `[retention]` of bookferry.toml says; without that table, none."""

import dagster as dg
import msgspec

from assets_defs.factories import job_schedule, run_settings
from pipelines.backup.flow import Backup
from pipelines.backup.pruning import prune_as_configured
from pipelines.settings.settings import Settings

JOB = "prune_backups"

MAX_SECONDS = 4 * 3600
"""The job removes files and compares names. It reads no file to its end."""


def retention(settings: Settings) -> dg.Definitions:
    """The job that removes old snapshots, thirteen hours after the nightly backup of a Sunday is due; none without a policy."""
    if settings.retention is None:
        return dg.Definitions()

    @dg.op
    def prune_snapshots(context: dg.OpExecutionContext, backup: dg.ResourceParam[Backup]) -> None:
        pruning = prune_as_configured(settings, backup.data)
        for note in pruning.notes:
            context.log.warning(note)
        context.add_output_metadata({**msgspec.to_builtins(pruning), "bytes": pruning.bytes})

    @dg.job(
        name=JOB,
        description="Removes the snapshots that [retention] does not keep, and the files that no other snapshot needs.",
        **run_settings(MAX_SECONDS),
    )
    def prune_backups() -> None:
        prune_snapshots()

    schedule = job_schedule(settings, JOB, 13, weekday="SUN")
    return dg.Definitions(jobs=[prune_backups], schedules=[schedule])
