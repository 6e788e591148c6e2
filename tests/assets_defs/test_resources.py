"""The resources: a path is all their configuration, and a run opens and closes the plain object."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from pipelines.backup.flow import Backup
from resources.backup import BackupResource
from resources.migration import MigrationResource
from tests.assets_defs.test_definitions import settings_for


@pytest.mark.parametrize("resource", [BackupResource, MigrationResource])
def test_a_path_is_the_whole_configuration(resource: type[BackupResource | MigrationResource]) -> None:
    """The web interface, run configurations and events show the fields of a resource, so none may be a secret (I10)."""
    assert {name: field.annotation for name, field in resource.model_fields.items()} == {"config_file": str}
    assert str(resource(config_file="bookferry.toml")) == "config_file='bookferry.toml'"


@pytest.mark.long
def test_leases_end_with_the_run(tmp_path: Path) -> None:
    """Also when a step fails: the next run must not find the library busy."""

    @dg.asset
    def failing(backup: dg.ResourceParam[Backup]) -> None:
        backup.data.prepare()
        with pytest.raises(Exception, match="TEST_USER"):
            backup.read_raw("old", "run", "publications")
        raise dg.Failure("after it took the lease")

    config = settings_for(tmp_path, "old").path  # the variables of its sign-in are not set
    resources = {"backup": BackupResource(config_file=str(config))}
    assert not dg.materialize([failing], resources=resources, raise_on_error=False).success
    with Backup.open(config).data.lease("old"):
        pass
