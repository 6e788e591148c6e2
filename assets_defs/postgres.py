"""Loads the staged tables into Postgres after publication, in a step that can be repeated alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.factories import tenant_asset, tenant_keys
from assets_defs.metadata import preview
from pipelines.backup.flow import Backup
from pipelines.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.store.postgres.loading import LoadResult

ASSET = "postgres"


def postgres_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """One asset for each tenant; none unless the settings name a database."""
    return [_postgres_asset(tenant) for tenant in settings.tenants if postgres_keys(settings, tenant)]


def postgres_keys(settings: Settings, tenant: str) -> list[dg.AssetKey]:
    """The keys of those assets that a backup of `tenant` makes."""
    return tenant_keys(tenant, [ASSET] if settings.stages else [])


def _postgres_asset(tenant: str) -> dg.AssetsDefinition:
    @tenant_asset(tenant, ASSET, kinds={"postgres"}, made_from=[SNAPSHOT])
    def postgres(backup: dg.ResourceParam[Backup]) -> dg.MaterializeResult:
        """The staged tables in the database that postgres_env names. A partial snapshot is not loaded; the last complete one stays."""
        return _result(backup.stage_into_postgres(tenant))

    return postgres


def _result(loads: "Sequence[LoadResult]") -> dg.MaterializeResult:
    tables = [(load.snapshot, name, rows) for load in loads for name, rows in load.tables.items()]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(load.rows for load in loads),
            "seconds": sum(load.seconds for load in loads),
            "snapshots": [load.snapshot for load in loads],
            "database": [f"{load.database}, schema {load.schema}" for load in loads],
            "left_out": [sentence for load in loads for sentence in load.left_out],
            "notes": [note for load in loads for note in load.notes],
            "preview": preview(("snapshot", "table", "rows"), tables),
        }
    )
