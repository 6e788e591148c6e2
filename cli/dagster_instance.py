"""The Dagster instance of Bookferry, and the code location of `bookferry ui`.

The code location has the same name as under `dagster dev -w workspace.yaml`, `dg` and in `deploy/`.
"""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock

from pipelines.file_access import make_folder
from pipelines.settings.settings import Settings
from pipelines.store.durable import storage_errors, write_atomically

INSTANCE = """\
# Dagster's settings for this data folder. Bookferry wrote this file once; you may change it.
telemetry: {enabled: false}
nux: {enabled: false}
concurrency:
  runs: {max_concurrent_runs: 10}  # libraries that are read at once; each takes some 250 MB of memory
  pools: {granularity: run, default_limit: 1}
run_monitoring: {enabled: true, free_slots_after_run_end_seconds: 60, cancel_timeout_seconds: 180}
run_retries: {enabled: false}
freshness: {enabled: true}
retention: {sensor: {purge_after_days: {skipped: 7, success: 30, failure: 90}}, schedule: {purge_after_days: {skipped: 7}}}
"""

NAME = "bookferry"

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


def dagster_home(settings: Settings) -> Path:
    """Returns the folder of Dagster's instance. The first use creates it."""
    home = dagster_folder(settings)
    with storage_errors(home):
        if home.is_relative_to(settings.data):
            make_folder(settings.data)
        make_folder(home)
        with one_at_a_time(home):
            if not (home / "dagster.yaml").exists():
                write_atomically(home / "dagster.yaml", INSTANCE.encode())
    return home


def one_at_a_time(home: Path) -> FileLock:
    """Lets one process create the instance: cron starts the backups of several libraries in the same second."""
    return FileLock(home / ".opening.lock")


def workspace(home: Path, folder: Path) -> Path:
    """Write the workspace file of a Dagster home; `folder` has our packages. Returns its path."""
    path = home / "bookferry-workspace.yaml"
    with storage_errors(path):
        write_atomically(path, _WORKSPACE.format(name=NAME, folder=str(folder)).encode())
    return path
