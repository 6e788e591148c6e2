"""Staging into Postgres: which snapshots are loaded into the configured database, after a backup or on request."""

from __future__ import annotations

from pipelines.errors import ConfigurationError
from pipelines.service.redaction import keep_secret
from pipelines.settings.settings import Settings
from pipelines.store.catalogue import newest_snapshots
from pipelines.store.postgres.loading import Database, LoadResult
from pipelines.store.snapshots.snapshots import DataFolder


def open_database(settings: Settings) -> Database:
    """The database that the settings name. No connection is made yet."""
    address = settings.postgres()
    if address is None or not settings.staging.load:
        reason = "`postgres_env` names no database" if address is None else "[postgres] has `load = false`"
        raise ConfigurationError(f"{settings.path}: tables are not staged into Postgres, because {reason}.")
    database = Database(address, settings.staging.schema_)
    keep_secret(database.secret)
    return database


def stage_new(database: Database, data: DataFolder, tenant: str) -> list[LoadResult]:
    """Load the new snapshots after a backup: usually its own snapshot, and nothing where that is partial."""
    loaded = database.loaded_snapshots(tenant)
    newest = newest_snapshots(data.complete_snapshots(tenant))
    return [database.load(data, snapshot) for snapshot in newest if snapshot.manifest.snapshot not in loaded]


def stage_again(
    database: Database, data: DataFolder, tenant: str, name: str | None = None, *, history: bool = False
) -> list[LoadResult]:
    """Load on request: the newest snapshots, even if they are loaded; one snapshot by `name`; or with `history` all that are not loaded."""
    snapshots = data.complete_snapshots(tenant, name)
    if history:
        loaded = database.loaded_snapshots(tenant)
        snapshots = [snapshot for snapshot in snapshots if snapshot.manifest.snapshot not in loaded]
    elif name is None:
        snapshots = newest_snapshots(snapshots)
        if not snapshots:
            raise ConfigurationError(f"'{tenant}' has no complete snapshot yet. `bookferry backup {tenant}` makes one.")
    return [database.load(data, snapshot) for snapshot in snapshots]
