"""The resource `migration`: the path of a configuration file in, a `Migration` out."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from pydantic import Field

from pipelines.migration.flow import Migration
from pipelines.settings.config_file import load_settings
from resources.recorded_process import record_process


class MigrationResource(dg.ConfigurableResource[Migration]):
    """Opens a `Migration` for one run. Only a path is configuration: secrets stay in the environment, where `Migration` reads them."""

    config_file: str = Field(description="Path of bookferry.toml.")

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Generator[Migration]:
        """Read the configuration, and release the target's lease at the end of the run."""
        settings = load_settings(Path(self.config_file))
        with Migration(settings) as migration:
            record_process(context, settings)
            yield migration
