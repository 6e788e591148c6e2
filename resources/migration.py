"""The `migration` resource: the path of a configuration file in, a `Migration` out."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from pipelines.migration.flow import Migration
from pipelines.settings.loading import load_settings


@dg.resource(
    config_schema={"config": dg.Field(str, description="Path of bookferry.toml.")},
    description="Plans, journal and the target's lease. Only a path is in the run configuration: secrets stay in the environment.",
)
def migration_resource(context: dg.InitResourceContext) -> Iterator[Migration]:
    """Open it for one run and give the lease back at the end."""
    with Migration(load_settings(Path(context.resource_config["config"]))) as migration:
        yield migration
