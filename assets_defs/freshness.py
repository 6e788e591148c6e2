"""Shows in Dagster when a backup is too old.

A partial snapshot materializes its asset like a complete one, so that a freshness policy would call it fresh. The check
`recent_complete_backup` reads the manifests instead: it is red when the newest complete snapshot is too old, whatever ran since.
"""

from collections.abc import Callable
from datetime import datetime

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.events import events_of
from assets_defs.factories import now_utc, tenant_key
from pipelines.doctor.backup_age import LATE, last_backup, newest_snapshots
from pipelines.doctor.findings import warning
from pipelines.errors import StorageError
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

CHECK = "recent_complete_backup"
TEXT = f"The newest complete snapshot is at most {LATE.total_seconds() / 3600:.0f} hours old."

SENSOR_SECONDS = 3600
"""Between two evaluations of the sensor."""


def freshness_watch(settings: Settings, now: Callable[[], datetime] = now_utc) -> dg.SensorDefinition:
    """A sensor that reads the manifests every hour: a check that runs with backups only would stay green without backups."""

    @dg.sensor(
        name="freshness_watch",
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Turns the check {CHECK} red where the newest complete snapshot is too old. Sends no request.",
    )
    def freshness_watch() -> dg.SensorResult:
        data, moment = open_data(settings), now()
        results = [freshness_result(data, tenant, moment) for tenant in settings.tenants]
        stale = [str(result.description) for result in results if not result.passed]
        return dg.SensorResult(
            asset_events=[*events_of(results)],
            skip_reason=" ".join(stale) or "Every library has a recent complete backup.",
        )

    return freshness_watch


def freshness_result(data: DataFolder, tenant: str, now: datetime) -> dg.AssetCheckResult:
    """The check `last backup` of `bookferry doctor`. Of a library without any snapshot it is a warning: nothing good has become bad."""
    complete, severity = None, dg.AssetCheckSeverity.ERROR
    try:
        snapshots = newest_snapshots(data, tenant)
        complete, result = snapshots.complete, last_backup(tenant, snapshots, now)
        if snapshots.newest is None and not snapshots.damaged:
            severity = dg.AssetCheckSeverity.WARN
    except StorageError as error:
        result = warning(str(error))
    message = result.message.removesuffix(".")
    sentence = f"{message}." if message.startswith(f"{tenant}/") else f"{message[:1].upper()}{message[1:]}."
    return dg.AssetCheckResult(
        asset_key=tenant_key(tenant, SNAPSHOT),
        check_name=CHECK,
        passed=complete is not None and now - datetime.fromisoformat(complete.manifest.finished_at) <= LATE,
        severity=severity,
        description=f"{sentence} {result.todo}".strip(),
    )
