"""The staged tables in Postgres, after the snapshot that they come from: a step of its own, which can be repeated alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from assets_defs.metadata import preview
from pipelines.backup.flow import Backup
from pipelines.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.store.postgres.loading import LoadResult

NAME = "postgres"


def postgres_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """One for each tenant, where the settings name a database."""
    return [_postgres_asset(tenant) for tenant in settings.tenants if postgres_keys(settings, tenant)]


def postgres_keys(settings: Settings, tenant: str) -> list[dg.AssetKey]:
    """What a backup of a tenant makes of it."""
    return [dg.AssetKey([tenant, NAME])] if settings.stages else []


def _postgres_asset(tenant: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=[tenant, NAME],
        group_name=tenant,
        kinds={"postgres"},
        pool=tenant,
        deps=[dg.AssetKey([tenant, "snapshot"])],
    )
    def postgres(library: dg.ResourceParam[Backup]) -> dg.MaterializeResult:
        """The staged tables in the database that postgres_env names. A partial snapshot is not loaded: the last complete one stays."""
        return _shown(library.stage_into_postgres(tenant))

    return postgres


def _shown(loads: "Sequence[LoadResult]") -> dg.MaterializeResult:
    tables = [(one.snapshot, name, rows) for one in loads for name, rows in one.tables.items()]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(one.rows for one in loads),
            "seconds": sum(one.seconds for one in loads),
            "snapshots": [one.snapshot for one in loads],
            "database": [f"{one.database}, schema {one.schema}" for one in loads],
            "left_out": [sentence for one in loads for sentence in one.left_out],
            "notes": [note for one in loads for note in one.notes],
            "preview": preview(("snapshot", "table", "rows"), tables),
        }
    )
