"""Reads the newest complete snapshot of every tenant again, on a schedule: without it, a damaged file would go unnoticed.

Each tenant has an asset for it, so that Dagster shows the age of the last good verification like the age of the backup.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.events import Result, failing, proof_results
from assets_defs.factories import job_schedule, tenant_key, tenants_job, upkeep_asset
from assets_defs.metadata import MOST_SHOWN, one_line_each, single_values
from pipelines.backup.flow import Backup
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.results import SnapshotVerification
from pipelines.store.maintenance.verification import Part, verify_named

JOB = "verify_backups"
ASSET = "verification"
CHECK = "intact"

MAX_SECONDS = 20 * 3600
"""A library with many large files takes hours to read."""

OLD = timedelta(days=8)
"""Age at which Dagster shows a verification as overdue: that of the last Sunday is missing."""


def verification(settings: Settings) -> dg.Definitions:
    """An asset for each tenant, and the job that verifies whole snapshots once a week."""
    text = "Reads the newest complete snapshot of every library again. Fails when a file is not as it was published."
    return dg.Definitions(
        assets=[_verification_asset(settings, tenant) for tenant in settings.tenants],
        jobs=[tenants_job(JOB, ASSET, settings.tenants, text, MAX_SECONDS)],
        schedules=[job_schedule(settings, JOB, 10, weekday="SUN")],
    )


def _verification_asset(settings: Settings, tenant: str) -> dg.AssetsDefinition:
    @upkeep_asset(
        tenant,
        ASSET,
        kinds={"parquet"},
        pooled=False,
        made_from=[SNAPSHOT],
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=OLD),
        checks={CHECK: "Every file is as it was published."},
    )
    def verification(backup: dg.ResourceParam[Backup]) -> Iterator[Result]:
        """The last verification that found every file of the newest complete snapshot as it was published. Sends no request."""
        results = verify_named(backup.data, tenant, Part(), now=datetime.now(UTC))
        yield from failing(verification_results(settings, results))

    return verification


def verification_results(settings: Settings, results: Sequence[SnapshotVerification]) -> Iterator[Result]:
    """Of each configured library, all its verifications together: an unreadable snapshot is named beside an intact one."""
    for tenant in settings.tenants:
        if of_tenant := [result for result in results if result.tenant == tenant]:
            problems = [problem for result in of_tenant for problem in result.problems]
            yield from proof_results(tenant_key(tenant, ASSET), CHECK, problems, _metadata(of_tenant[-1]))


def _metadata(result: SnapshotVerification) -> dict[str, Any]:
    return {
        **single_values(result),
        "problems": one_line_each(result.problems[:MOST_SHOWN]),
        "notes": one_line_each(result.notes),
    }
