"""Wires everything for Dagster; workspace.yaml, pyproject.toml and the command line name this module."""

import dagster as dg

from assets_defs.backup import PUBLICATIONS
from assets_defs.configuration import configuration_watch
from assets_defs.dead_runs import dead_runs
from assets_defs.drill import drills
from assets_defs.follow_ups import follow_up_assets
from assets_defs.freshness import freshness_watch
from assets_defs.migration import migrations
from assets_defs.notifications import notifications
from assets_defs.retention import retention
from assets_defs.schedules import nightly_backup
from assets_defs.sign_in import sign_ins
from assets_defs.snapshot import snapshot_asset
from assets_defs.verification import verification
from pipelines.backup.flow import nightly_resources
from pipelines.file_access import restrict_new_files
from pipelines.settings.config_file import find_config, load_settings
from pipelines.settings.settings import Settings
from resources.backup import BackupResource
from resources.migration import MigrationResource


def build_definitions(settings: Settings) -> dg.Definitions:
    """Assets, checks, jobs, schedules and sensors for every tenant of the settings. Each run opens its own `Backup` or `Migration`."""
    shown = {name: nightly_resources(tenant) for name, tenant in settings.tenants.items()}
    backups = dg.Definitions(
        assets=[
            asset
            for name, resources in shown.items()
            for asset in (
                snapshot_asset(name, resources),
                *follow_up_assets(settings, name, with_report=PUBLICATIONS in resources),
            )
        ],
        executor=dg.in_process_executor,  # of assets that a person selects: a library has one process at a time
        sensors=[
            configuration_watch(settings),
            dead_runs(settings),
            freshness_watch(settings),
            notifications(settings),
        ],
        resources={
            "backup": BackupResource(config_file=str(settings.path)),
            "migration": MigrationResource(config_file=str(settings.path)),
        },
    )
    upkeep = (nightly_backup, verification, drills, retention, sign_ins, migrations)
    return dg.Definitions.merge(backups, *(definitions(settings) for definitions in upkeep))


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions for $BOOKFERRY_CONFIG or ./bookferry.toml, read when Dagster loads them.

    Without a configuration loading fails with a message that says what to do. An empty page would look as if there were nothing to back up.
    """
    settings = load_settings(find_config())
    restrict_new_files(settings.group)  # of this code server, or of the run that loads the definitions
    return build_definitions(settings)
