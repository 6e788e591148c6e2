"""Shows in Dagster when a backup or its verification is too old.

A partial snapshot materializes its asset like a complete one, so the freshness policies alone would call it fresh. The check
`recent_complete_backup` reads the manifests: it is red when the newest complete snapshot is too old, whatever ran since, and not before.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.events import events_of
from assets_defs.factories import after_backup, cron, now_utc, tenant_key
from pipelines.doctor.backup_age import LATE, last_backup, newest_snapshots
from pipelines.doctor.findings import warning
from pipelines.errors import StorageError
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

CHECK = "recent_complete_backup"
TEXT = f"The newest complete snapshot is at most {LATE.total_seconds() / 3600:.0f} hours old."

GRACE_HOURS = 12
"""From the start of a run to its deadline: a million records at 60 requests a minute take 5.6 hours."""

SENSOR_SECONDS = 3600
"""Between two evaluations of the sensor."""


def backup_freshness(settings: Settings) -> dg.FreshnessPolicy:
    """A snapshot every night, at the latest twelve hours after the backup is due."""
    return _policy(settings, cron(settings.nightly_at, hours_later=GRACE_HOURS))


def verified_at(settings: Settings) -> str:
    """When snapshots are verified on a Sunday: ten hours after the nightly backup is due."""
    return after_backup(settings, 10)


def verification_freshness(settings: Settings) -> dg.FreshnessPolicy:
    """A verification at the latest twelve hours after it is due."""
    return _policy(settings, cron(verified_at(settings), hours_later=GRACE_HOURS, weekday="SUN"))


def _policy(settings: Settings, deadline: str) -> dg.FreshnessPolicy:
    bound = timedelta(hours=GRACE_HOURS)
    return dg.FreshnessPolicy.cron(deadline, lower_bound_delta=bound, timezone=settings.timezone)


def freshness_watch(settings: Settings, now: Callable[[], datetime] = now_utc) -> dg.SensorDefinition:
    """A sensor that reads the manifests every hour: a check that runs with backups only would stay green without backups."""

    @dg.sensor(
        name="freshness_watch",
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Turns the check {CHECK} red where the newest complete snapshot is too old. Sends no request.",
    )
    def freshness_watch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        data, moment = open_data(settings), now()
        before = json.loads(context.cursor or "{}")
        results = {
            tenant: _age(data, tenant, moment, datetime.fromisoformat(before.get(tenant, moment.isoformat())))
            for tenant in settings.tenants
        }
        stale = [age.advice for age in results.values() if not age.recent]
        return dg.SensorResult(
            asset_events=[*events_of(_result(tenant, age) for tenant, age in results.items())],
            skip_reason=" ".join(stale) or "Every library has a recent complete backup.",
            cursor=json.dumps({tenant: age.since.isoformat() for tenant, age in results.items()}),
        )

    return freshness_watch


def freshness_result(data: DataFolder, tenant: str, now: datetime) -> dg.AssetCheckResult:
    """The same at the end of a backup, whether it published a snapshot or not."""
    return _result(tenant, _age(data, tenant, now, now))


def _result(tenant: str, age: "_Age") -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=tenant_key(tenant, SNAPSHOT),
        check_name=CHECK,
        passed=age.recent,
        severity=age.severity,
        description=age.advice,
    )


class _Age(NamedTuple):
    """The age of the newest complete backup of a library. It is late `LATE` after `since`."""

    recent: bool
    since: datetime
    """When that backup ended; where none can be found, when the last one did that was, or else when the library was first seen."""
    severity: dg.AssetCheckSeverity
    advice: str


def _age(data: DataFolder, tenant: str, now: datetime, before: datetime) -> _Age:
    """The check `last backup` of `bookferry doctor`. A library without a backup, such as a new one, is as late as others."""
    try:
        snapshots = newest_snapshots(data, tenant)
        complete, result = snapshots.complete, last_backup(tenant, snapshots, now)
    except StorageError as error:
        complete, result = None, warning(str(error))
    since = datetime.fromisoformat(complete.manifest.finished_at) if complete else before
    late = now - since > LATE
    message = result.message.removesuffix(".")
    sentence = f"{message}." if message.startswith(f"{tenant}/") else f"{message[:1].upper()}{message[1:]}."
    return _Age(
        complete is not None and not late,
        since,
        dg.AssetCheckSeverity.ERROR if late else dg.AssetCheckSeverity.WARN,
        f"{sentence} {result.todo}".strip(),
    )
