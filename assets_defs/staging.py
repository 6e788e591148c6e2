"""Stages a published snapshot for analysis: loads it into Postgres, registers it in Iceberg tables. Each step can be repeated alone."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.factories import tenant_asset
from assets_defs.metadata import preview
from pipelines.backup.flow import Backup
from pipelines.errors import BookferryError
from pipelines.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.store.iceberg.tables import Registration
    from pipelines.store.postgres.loading import LoadResult

Results = Iterator[dg.AssetCheckResult | dg.MaterializeResult]

POSTGRES = "postgres"
ICEBERG = "iceberg"
CHECK = "newest_is_there"
_TEXT = "The newest complete snapshot is there."


def staging_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """The assets of each tenant; none unless the settings name a database or a catalogue."""
    makers = {POSTGRES: _postgres_asset, ICEBERG: _iceberg_asset}
    return [makers[name](tenant) for tenant in settings.tenants for name in staged_places(settings)]


def staged_places(settings: Settings) -> list[str]:
    """The names of these assets."""
    return [*([POSTGRES] if settings.stages else []), *([ICEBERG] if settings.iceberg is not None else [])]


def _postgres_asset(tenant: str) -> dg.AssetsDefinition:
    @tenant_asset(tenant, POSTGRES, kinds={"postgres"}, made_from=[SNAPSHOT], checks={CHECK: _TEXT})
    def postgres(backup: dg.ResourceParam[Backup]) -> Results:
        """The staged tables in the database that postgres_env names. A partial snapshot is not loaded; the last complete one stays."""
        yield from staging_results(POSTGRES, backup, tenant)

    return postgres


def _iceberg_asset(tenant: str) -> dg.AssetsDefinition:
    @tenant_asset(tenant, ICEBERG, kinds={"iceberg"}, made_from=[SNAPSHOT], checks={CHECK: _TEXT})
    def iceberg(backup: dg.ResourceParam[Backup]) -> Results:
        """The staged tables in the catalogue that [iceberg] names. A partial snapshot and tables about people stay out."""
        yield from staging_results(ICEBERG, backup, tenant)

    return iceberg


def staging_results(name: str, backup: Backup, tenant: str) -> Results:
    """Stage the new snapshots in one of the `staged_places`. An error is a red check, and is raised again."""
    try:
        result = _loaded(backup, tenant) if name == POSTGRES else _registered(backup, tenant)
    except BookferryError as error:
        yield dg.AssetCheckResult(check_name=CHECK, passed=False, description=str(error))
        raise dg.Failure(str(error), allow_retries=False) from error
    yield dg.AssetCheckResult(check_name=CHECK, passed=True)
    yield result


def _loaded(backup: Backup, tenant: str) -> dg.MaterializeResult:
    loads = backup.stage_into_postgres(tenant)
    places = [f"{load.database}, schema {load.schema}" for load in loads]
    left_out = [sentence for load in loads for sentence in load.left_out]
    notes = [note for load in loads for note in load.notes]
    return _result(loads, {"database": places, "left_out": left_out, "notes": notes})


def _registered(backup: Backup, tenant: str) -> dg.MaterializeResult:
    done = backup.register_in_iceberg(tenant)
    return _result(done, {"catalogue": [f"{one.catalogue}, namespace {one.namespace}" for one in done]})


def _result(staged: "Sequence[LoadResult | Registration]", particulars: dict[str, list[str]]) -> dg.MaterializeResult:
    tables = [(one.snapshot, name, rows) for one in staged for name, rows in one.tables.items()]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(one.rows for one in staged),
            "seconds": sum(one.seconds for one in staged),
            "snapshots": [one.snapshot for one in staged],
            **particulars,
            "preview": preview(("snapshot", "table", "rows"), tables),
        }
    )
