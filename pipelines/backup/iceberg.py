"""Iceberg tables: which snapshots are registered after a backup or on request, and which are removed when old snapshots go."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pipelines.errors import ConfigurationError
from pipelines.service.redaction import keep_secret
from pipelines.settings.settings import Settings
from pipelines.store.catalogue import newest_snapshots
from pipelines.store.iceberg.catalogue import INSTALL, catalogue_settings
from pipelines.store.snapshots.snapshots import DataFolder

if TYPE_CHECKING:
    from pipelines.store.iceberg.tables import IcebergTables, Registration


def open_tables(settings: Settings, data: DataFolder) -> IcebergTables:
    """The Iceberg tables that the settings name. No connection is made yet."""
    chosen = catalogue_settings(settings)
    keep_secret(*chosen.secrets)
    try:
        from pipelines.store.iceberg.tables import IcebergTables  # noqa: PLC0415  PyIceberg is an extra
    except ImportError as error:
        raise ConfigurationError(
            f"{settings.path}: [iceberg] needs PyIceberg, which cannot be imported ({error}). Run `{INSTALL}`."
        ) from error
    return IcebergTables(chosen, data)


def register_new(tables: IcebergTables, data: DataFolder, tenant: str) -> list[Registration]:
    """Register what is missing after a backup: its own snapshot if it is complete, and earlier ones that failed."""
    return [tables.register(snapshot) for snapshot in tables.missing(data.complete_snapshots(tenant))]


def register_again(
    tables: IcebergTables, data: DataFolder, tenant: str, name: str | None = None, *, history: bool = False
) -> list[Registration]:
    """Register on request the newest snapshots, one snapshot by `name`, or with `history` all. What is there stays as it is."""
    snapshots = data.complete_snapshots(tenant, name)
    if name is None and not history:
        snapshots = newest_snapshots(snapshots)[::-1]
    return [tables.register(snapshot) for snapshot in snapshots]


def remove_from_tables(settings: Settings, data: DataFolder, kept: Mapping[str, Collection[str]]) -> None:
    """Remove from the Iceberg tables, if there are any, all snapshots but these (library → ids), before their files are deleted."""
    if settings.iceberg is not None:
        open_tables(settings, data).keep_only(kept)
