"""The resource `backup`: the path of a configuration file in, a `Backup` out."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from pydantic import Field

from pipelines.backup.flow import Backup
from resources.recorded_process import record_process


class BackupResource(dg.ConfigurableResource[Backup]):
    """Opens a `Backup` for one run. Only a path is configuration: secrets stay in the environment, where `Backup` reads them."""

    config_file: str = Field(description="Path of bookferry.toml.")

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Generator[Backup]:
        """Read the configuration, and release the leases at the end of the run."""
        with Backup.open(Path(self.config_file)) as backup:
            record_process(context, backup.settings)
            yield backup
