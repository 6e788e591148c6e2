"""Wires everything for Dagster; workspace.yaml, pyproject.toml and the command line name this module."""

import dagster as dg

from assets_defs.backup import tenant_assets
from assets_defs.schedules import NIGHTLY_BACKUP, nightly_backup_schedule
from pipelines.backup import RESOURCES
from pipelines.library import Library
from pipelines.settings import Settings, find_config, load_settings
from resources.library import library_resource


def build_definitions(settings: Settings, library: Library | None = None) -> dg.Definitions:
    """Assets, job and schedule for every tenant that the settings name.

    Each run opens a `Library` of its own; the command line gives the one it watches.
    """
    return dg.Definitions(
        assets=[asset for tenant in settings.tenants for asset in tenant_assets(tenant, RESOURCES)],
        jobs=[NIGHTLY_BACKUP],
        schedules=[nightly_backup_schedule(settings)],
        resources={"library": library or library_resource.configured({"config": str(settings.path)})},
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What $BOOKFERRY_CONFIG or ./bookferry.toml describes, read when Dagster asks.

    Without it loading fails, with the message that says what to do: an empty page would look as if nothing had to be backed up.
    """
    return build_definitions(load_settings(find_config()))
