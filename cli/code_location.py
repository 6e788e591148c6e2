"""The Dagster instance of the command line, and the code location of `bookferry ui`.

It has the same name as under `dagster dev -w workspace.yaml`, `dg` and in `deploy/`.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.settings.settings import Settings
from pipelines.store.durable import storage_errors, write_atomically

if TYPE_CHECKING:
    import dagster as dg

NAME = "bookferry"
EARLIER_NAME = "assets_defs.definitions"
"""Its name in the histories that `bookferry ui` wrote before."""

_WORKSPACE = """\
# Bookferry writes this file anew whenever `bookferry ui` starts.
load_from:
  - python_module:
      module_name: assets_defs.definitions
      location_name: {name}
      working_directory: {folder!r}
"""


def dagster_folder(settings: Settings) -> Path:
    """Returns the path of Dagster's instance: $DAGSTER_HOME if it is set, else a folder in the data folder."""
    return Path(os.environ.get("DAGSTER_HOME") or settings.data / "dagster")


def workspace(home: Path, folder: Path) -> Path:
    """Write the workspace file of a Dagster home; `folder` has our packages. Returns its path.

    The first time, what a person switched in the pages (schedules, sensors) moves from the earlier name of the code location to this one.
    """
    path = home / "bookferry-workspace.yaml"
    is_first = not path.exists()
    if is_first:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import dagster as dg  # noqa: PLC0415  takes longer than the rest, and is needed once

            with dg.DagsterInstance.from_config(str(home)) as instance:
                rename(instance)
    with storage_errors(path):
        write_atomically(path, _WORKSPACE.format(name=NAME, folder=str(folder)).encode())
    return path


def rename(instance: dg.DagsterInstance) -> int:
    """Copy the states of schedules and sensors of the earlier name to this one, unless it has them. Returns how many were copied."""
    from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin  # noqa: PLC0415
    from dagster._core.scheduler.instigation import InstigatorState  # noqa: PLC0415

    states = instance.all_instigator_state()
    known = {state.selector_id for state in states}
    copied = 0
    for state in states:
        origin = state.origin.repository_origin.code_location_origin
        if not isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin) or origin.location_name != EARLIER_NAME:
            continue
        repository = state.origin.repository_origin._replace(code_location_origin=origin._replace(location_name=NAME))
        renamed = InstigatorState(
            state.origin._replace(repository_origin=repository),
            state.instigator_type,
            state.status,
            state.instigator_data,
        )
        if renamed.selector_id not in known:
            instance.add_instigator_state(renamed)
            copied += 1
    return copied
