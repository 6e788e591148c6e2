"""Shows in Dagster when a backup or its verification is too old.

A partial snapshot materializes its asset like a complete one, so the freshness policies alone would call it fresh. The check
`recent_complete_backup` reads the manifests: it is red when the newest complete snapshot is too old, whatever ran since.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.factories import now_utc, tenant_key, weekly_or_daily
from pipelines.backup.flow import Backup
from pipelines.doctor.findings import CheckResult, CheckStatus, warning
from pipelines.doctor.machine import LATE, last_backup, newest_snapshots
from pipelines.errors import StorageError
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

CHECK = "recent_complete_backup"

GRACE_HOURS = 12
"""From the start of a run to its deadline: a million records at 60 requests a minute take 5.6 hours."""

SENSOR_SECONDS = 3600
"""Between two evaluations of the sensor."""


def backup_freshness(settings: Settings) -> dg.FreshnessPolicy:
    """A snapshot every night, at the latest twelve hours after the backup is due."""
    return _policy(settings.nightly_at, settings.timezone)


def verification_freshness(settings: Settings) -> dg.FreshnessPolicy:
    """A verification at the latest twelve hours after it is due."""
    return _policy(settings.verify_at, settings.timezone)


def _policy(moment: str, zone: str) -> dg.FreshnessPolicy:
    deadline = weekly_or_daily(moment, hours_later=GRACE_HOURS)
    return dg.FreshnessPolicy.cron(deadline, lower_bound_delta=timedelta(hours=GRACE_HOURS), timezone=zone)


def freshness_checks(settings: Settings, now: Callable[[], datetime] = now_utc) -> list[dg.AssetChecksDefinition]:
    """`recent_complete_backup` for each tenant. It runs with each backup; the sensor evaluates it every hour."""
    return [_freshness_check(tenant, now) for tenant in settings.tenants]


def freshness_watch(settings: Settings, now: Callable[[], datetime] = now_utc) -> dg.SensorDefinition:
    """A sensor that reads the manifests every hour: a check that runs with backups only would stay green without backups."""

    @dg.sensor(
        name="freshness_watch",
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Turns the check {CHECK} red where the newest complete snapshot is too old. Sends no request.",
    )
    def freshness_watch() -> dg.SensorResult:
        data = open_data(settings)
        results = {tenant: _age(data, tenant, now()) for tenant in settings.tenants}
        stale = [result.message for result in results.values() if not _is_recent(result)]
        return dg.SensorResult(
            asset_events=[
                dg.AssetCheckEvaluation(
                    asset_key=tenant_key(tenant, SNAPSHOT),
                    check_name=CHECK,
                    passed=_is_recent(result),
                    severity=_severity(result),
                    description=_advice(result),
                )
                for tenant, result in results.items()
            ],
            skip_reason=" ".join(stale) or "Every library has a recent complete backup.",
        )

    return freshness_watch


def _freshness_check(tenant: str, now: Callable[[], datetime]) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=tenant_key(tenant, SNAPSHOT),
        name=CHECK,
        pool=tenant,
        description=f"The newest complete snapshot is at most {LATE.total_seconds() / 3600:.0f} hours old.",
    )
    def recent_complete_backup(backup: dg.ResourceParam[Backup]) -> dg.AssetCheckResult:
        result = _age(backup.data, tenant, now())
        return dg.AssetCheckResult(passed=_is_recent(result), severity=_severity(result), description=_advice(result))

    return recent_complete_backup


def _age(data: DataFolder, tenant: str, now: datetime) -> CheckResult:
    """The check `last backup` of `bookferry doctor`."""
    try:
        snapshots = newest_snapshots(data, tenant)
    except StorageError as error:
        return warning("last backup", str(error), age_seconds=None)
    return last_backup(tenant, snapshots, now)


def _is_recent(result: CheckResult) -> bool:
    age = result.facts["age_seconds"]
    return age is not None and age <= LATE.total_seconds()


def _severity(result: CheckResult) -> dg.AssetCheckSeverity:
    """A warning before the first backup of a library: nothing that was good has become bad."""
    return dg.AssetCheckSeverity.WARN if result.status is CheckStatus.NOTE else dg.AssetCheckSeverity.ERROR


def _advice(result: CheckResult) -> str:
    sentence = f"{result.message[:1].upper()}{result.message[1:].removesuffix('.')}."
    return f"{sentence} {result.todo}".strip()
