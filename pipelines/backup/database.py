"""The flow into Postgres: which snapshots are staged into the database that the settings name, after a backup or because somebody asks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from pipelines.errors import ConfigurationError
from pipelines.records.tables.registry import TABLES
from pipelines.service.redaction import keep_secret
from pipelines.settings.settings import Settings
from pipelines.store.catalogue import newest_holding
from pipelines.store.postgres.loading import Database, Staged
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot


def open_database(settings: Settings, environ: Mapping[str, str] = os.environ) -> Database:
    """The database that the settings name; nothing is asked of it yet."""
    address = settings.postgres(environ)
    if address is None or not settings.staging.load:
        missing = "`postgres_env` names no database" if address is None else "`load = false` in [postgres] says so"
        raise ConfigurationError(f"{settings.path}: tables are not staged into Postgres, because {missing}.")
    database = Database(address, settings.staging.schema_, settings.staging.wait_seconds)
    keep_secret(database.secret)
    return database


def stage_new(database: Database, data: DataFolder, tenant: str) -> list[Staged]:
    """What is new since the last time, after a backup: usually its snapshot; nothing where that is partial."""
    wanted, held = _shown(_complete(data, tenant)), database.held(tenant)
    return [database.load(data, snapshot) for snapshot in wanted if snapshot.manifest.snapshot not in held]


def stage_again(
    database: Database, data: DataFolder, tenant: str, name: str | None = None, *, history: bool = False
) -> list[Staged]:
    """What somebody asks for: what is newest, though it may be there; one snapshot by `name`; or, as `history`, all that is not there."""
    complete = _complete(data, tenant)
    if name is not None:
        wanted = [one for one in complete if name in (one.name, one.manifest.snapshot)]
        if not wanted:
            known = ", ".join(one.manifest.snapshot for one in complete) or "none"
            raise ConfigurationError(
                f"'{name}' is no complete snapshot of '{tenant}', and only such are staged. Complete ones: {known}."
            )
    elif history:
        held = database.held(tenant)
        wanted = [one for one in reversed(complete) if one.manifest.snapshot not in held]
    else:
        wanted = _shown(complete)
        if not wanted:
            raise ConfigurationError(f"'{tenant}' has no complete snapshot yet. `bookferry backup {tenant}` makes one.")
    return [database.load(data, snapshot) for snapshot in wanted]


def _complete(data: DataFolder, tenant: str) -> list[Snapshot]:
    return [snapshot for snapshot in data.snapshots(tenant) if snapshot.manifest.complete]


def _shown(complete: Iterable[Snapshot]) -> list[Snapshot]:
    """The snapshots that the newest tables come from, newest first: one, unless the newest one lacks some resources."""
    complete = list(complete)
    newest = {one.name: one for table in TABLES.values() for one in newest_holding(table, complete)}
    return sorted(newest.values(), key=lambda one: one.manifest.snapshot, reverse=True)
