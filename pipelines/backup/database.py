"""Staging into Postgres: which snapshots are loaded into the configured database, after a backup or on request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from pipelines.errors import ConfigurationError
from pipelines.records.tables.registry import TABLES
from pipelines.service.redaction import keep_secret
from pipelines.settings.settings import Settings
from pipelines.store.catalogue import newest_with_table
from pipelines.store.postgres.loading import Database, LoadResult
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot


def open_database(settings: Settings, environ: Mapping[str, str] = os.environ) -> Database:
    """The database that the settings name. No connection is made yet."""
    address = settings.postgres(environ)
    if address is None or not settings.staging.load:
        reason = "`postgres_env` names no database" if address is None else "[postgres] has `load = false`"
        raise ConfigurationError(f"{settings.path}: tables are not staged into Postgres, because {reason}.")
    database = Database(address, settings.staging.schema_, settings.staging.wait_seconds)
    keep_secret(database.secret)
    return database


def stage_new(database: Database, data: DataFolder, tenant: str) -> list[LoadResult]:
    """Load the new snapshots after a backup: usually its own snapshot, and nothing where that is partial."""
    loaded = database.loaded_snapshots(tenant)
    newest = _newest_snapshots(_complete_snapshots(data, tenant))
    return [database.load(data, snapshot) for snapshot in newest if snapshot.manifest.snapshot not in loaded]


def stage_again(
    database: Database, data: DataFolder, tenant: str, name: str | None = None, *, history: bool = False
) -> list[LoadResult]:
    """Load on request: the newest snapshots, even if they are loaded; one snapshot by `name`; or with `history` all that are not loaded."""
    complete = _complete_snapshots(data, tenant)
    if name is not None:
        wanted = [snapshot for snapshot in complete if name in (snapshot.name, snapshot.manifest.snapshot)]
        if not wanted:
            known = ", ".join(snapshot.manifest.snapshot for snapshot in complete) or "none"
            raise ConfigurationError(
                f"'{name}' is no complete snapshot of '{tenant}', and only complete ones are staged. Complete ones: {known}."
            )
    elif history:
        loaded = database.loaded_snapshots(tenant)
        wanted = [snapshot for snapshot in reversed(complete) if snapshot.manifest.snapshot not in loaded]
    else:
        wanted = _newest_snapshots(complete)
        if not wanted:
            raise ConfigurationError(f"'{tenant}' has no complete snapshot yet. `bookferry backup {tenant}` makes one.")
    return [database.load(data, snapshot) for snapshot in wanted]


def _complete_snapshots(data: DataFolder, tenant: str) -> list[Snapshot]:
    return [snapshot for snapshot in data.snapshots(tenant) if snapshot.manifest.complete]


def _newest_snapshots(complete: Iterable[Snapshot]) -> list[Snapshot]:
    """The newest snapshot, and older ones where it lacks some resources; newest first."""
    complete = list(complete)
    newest = {snapshot.name: snapshot for table in TABLES.values() for snapshot in newest_with_table(table, complete)}
    return sorted(newest.values(), key=lambda snapshot: snapshot.manifest.snapshot, reverse=True)
