"""The `library` resource: the path of a configuration file in, a `Backup` out."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from pipelines.backup.flow import Backup

ASKED = "bookferry/asked"
"""Tag of a run: the resources that somebody wanted by name, which a repetition of it wants, too."""


@dg.resource(
    config_schema={"config": dg.Field(str, description="Path of bookferry.toml.")},
    description="Settings, data folder and leases. Only a path is in the run configuration: secrets stay in the environment.",
)
def library_resource(context: dg.InitResourceContext) -> Iterator[Backup]:
    """Open the library for one run and give its leases back at the end."""
    asked = (context.run.tags.get(ASKED) or "").split() if context.run else ()
    with Backup.open(Path(context.resource_config["config"]), asked=asked) as library:
        yield library
