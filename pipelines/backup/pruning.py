"""Removes old snapshots as the table `[retention]` of bookferry.toml says, from the Iceberg tables, too."""

from __future__ import annotations

from functools import partial
from zoneinfo import ZoneInfo

from pipelines.backup.iceberg import remove_from_tables
from pipelines.errors import ConfigurationError
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.retention import PruneResult, prune
from pipelines.store.snapshots.snapshots import DataFolder


def prune_as_configured(
    settings: Settings, data: DataFolder, *, tenant: str | None = None, dry_run: bool = False
) -> PruneResult:
    """Remove the snapshots of one tenant or of all that the configured policy does not keep."""
    if settings.retention is None:
        raise ConfigurationError(
            f"{settings.path}: nothing says what to keep. Add a table [retention] with keep_last, keep_daily, keep_weekly or keep_monthly, "
            "for example: keep_daily = 7"
        )
    return prune(
        data,
        list(settings.tenants),
        settings.retention,
        ZoneInfo(settings.timezone),
        tenant=tenant,
        dry_run=dry_run,
        before_removal=partial(remove_from_tables, settings, data),
    )
