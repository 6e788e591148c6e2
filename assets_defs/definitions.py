"""Wires everything for Dagster; workspace.yaml, pyproject.toml and the command line name this module."""

import dagster as dg

from assets_defs.backup import PUBLICATIONS
from assets_defs.configuration import configuration_watch
from assets_defs.dead_runs import dead_runs
from assets_defs.drill import drill_assets, drill_job, drill_schedule
from assets_defs.follow_ups import follow_up_assets
from assets_defs.freshness import freshness_watch
from assets_defs.migration import migration_assets, migration_jobs
from assets_defs.notifications import notifications
from assets_defs.retention import retention_job, retention_schedule
from assets_defs.schedules import nightly_backup, nightly_backup_schedule
from assets_defs.sign_in import sign_in_assets, sign_in_job, sign_in_schedule, sign_in_watch
from assets_defs.snapshot import snapshot_asset
from assets_defs.verification import verification_assets, verification_job, verification_schedule
from pipelines.backup.flow import nightly_resources
from pipelines.file_access import restrict_new_files
from pipelines.settings.loading import find_config, load_settings
from pipelines.settings.settings import Settings
from resources.backup import BackupResource
from resources.migration import MigrationResource


def build_definitions(settings: Settings) -> dg.Definitions:
    """Assets, checks, jobs, schedules and sensors for every tenant of the settings. Each run opens its own `Backup` or `Migration`."""
    shown = {name: nightly_resources(tenant) for name, tenant in settings.tenants.items()}
    return dg.Definitions(
        assets=[
            *(
                asset
                for name, resources in shown.items()
                for asset in (
                    snapshot_asset(settings, name, resources),
                    *follow_up_assets(settings, name, with_report=PUBLICATIONS in resources),
                )
            ),
            *verification_assets(settings),
            *sign_in_assets(settings),
            *migration_assets(settings),
            *drill_assets(settings),
        ],
        executor=dg.in_process_executor,  # of assets that a person selects: a library has one process at a time
        jobs=[
            nightly_backup(settings.tenants),
            verification_job(settings),
            drill_job(settings),
            *retention_job(settings),
            *sign_in_job(settings),
            *migration_jobs(settings),
        ],
        schedules=[
            nightly_backup_schedule(settings),
            verification_schedule(settings),
            drill_schedule(settings),
            *retention_schedule(settings),
            *sign_in_schedule(settings),
        ],
        sensors=[
            configuration_watch(settings),
            dead_runs(settings),
            freshness_watch(settings),
            notifications(settings),
            *sign_in_watch(settings),
        ],
        resources={
            "backup": BackupResource(config_file=str(settings.path)),
            "migration": MigrationResource(config_file=str(settings.path)),
        },
    )


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions for $BOOKFERRY_CONFIG or ./bookferry.toml, read when Dagster loads them.

    Without a configuration loading fails with a message that says what to do. An empty page would look as if there were nothing to back up.
    """
    settings = load_settings(find_config())
    restrict_new_files(settings.group)  # of this code server, or of the run that loads the definitions
    return build_definitions(settings)
