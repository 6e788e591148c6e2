"""When a backup, or the proof of one, is too old: seen in Dagster without anybody looking for it.

A partial snapshot materializes its asset like a complete one, so the policies alone would call it fresh. The check
`recent_complete_backup` looks at the manifests: it is red where the newest complete snapshot is too old, whatever ran since.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets_defs.schedules import weekly_or_daily
from pipelines.backup.flow import Backup
from pipelines.doctor.findings import CheckResult, warning
from pipelines.doctor.machine import LATE, last_backup, newest_snapshots
from pipelines.errors import StorageError
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

CHECK = "recent_complete_backup"

GRACE_HOURS = 12
"""After the hour at which a run begins: a million records at 60 requests a minute take 5.6 hours."""

LOOK_SECONDS = 3600
"""Between two looks of the watch."""


def backup_freshness(settings: Settings) -> dg.FreshnessPolicy:
    """A snapshot of every night, by noon or so."""
    return _by(settings.nightly_at, settings.timezone)


def verification_freshness(settings: Settings) -> dg.FreshnessPolicy:
    """A verification whenever one is due."""
    return _by(settings.verify_at, settings.timezone)


def _by(moment: str, zone: str) -> dg.FreshnessPolicy:
    deadline = weekly_or_daily(moment, hours_later=GRACE_HOURS)
    return dg.FreshnessPolicy.cron(deadline, lower_bound_delta=timedelta(hours=GRACE_HOURS), timezone=zone)


def _now() -> datetime:
    return datetime.now(UTC)


def freshness_checks(settings: Settings, now: Callable[[], datetime] = _now) -> list[dg.AssetChecksDefinition]:
    """`recent_complete_backup` for each tenant; it runs with each backup, and the watch looks every hour."""
    return [_freshness_check(tenant, now) for tenant in settings.tenants]


def freshness_watch(settings: Settings, now: Callable[[], datetime] = _now) -> dg.SensorDefinition:
    """Looks at the manifests every hour: a check that only backups run would stay green when no backup runs."""

    @dg.sensor(
        name="freshness_watch",
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Turns the check {CHECK} red where the newest complete snapshot is too old. Sends no request.",
    )
    def freshness_watch() -> dg.SensorResult:
        data = open_data(settings)
        found = {tenant: _age(data, tenant, now()) for tenant in settings.tenants}
        stale = [finding.message for finding in found.values() if not _is_recent(finding)]
        return dg.SensorResult(
            asset_events=[
                dg.AssetCheckEvaluation(
                    asset_key=_key(tenant),
                    check_name=CHECK,
                    passed=_is_recent(finding),
                    description=_advice(finding),
                )
                for tenant, finding in found.items()
            ],
            skip_reason=" ".join(stale) or "Every library has a recent complete backup.",
        )

    return freshness_watch


def _key(tenant: str) -> dg.AssetKey:
    return dg.AssetKey([tenant, "snapshot"])


def _freshness_check(tenant: str, now: Callable[[], datetime]) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=_key(tenant),
        name=CHECK,
        pool=tenant,
        description=f"The newest complete snapshot is at most {LATE.total_seconds() / 3600:.0f} hours old.",
    )
    def recent_complete_backup(library: dg.ResourceParam[Backup]) -> dg.AssetCheckResult:
        finding = _age(library.data, tenant, now())
        return dg.AssetCheckResult(passed=_is_recent(finding), description=_advice(finding))

    return recent_complete_backup


def _age(data: DataFolder, tenant: str, now: datetime) -> CheckResult:
    """What doctor says of it."""
    try:
        newest, complete = newest_snapshots(data, tenant)
    except StorageError as error:
        return warning("last backup", str(error), age_seconds=None)
    return last_backup(tenant, newest, complete, now)


def _is_recent(finding: CheckResult) -> bool:
    age = finding.facts["age_seconds"]
    return age is not None and age <= LATE.total_seconds()


def _advice(finding: CheckResult) -> str:
    sentence = f"{finding.message[:1].upper()}{finding.message[1:].removesuffix('.')}."
    return f"{sentence} {finding.todo}".strip()
