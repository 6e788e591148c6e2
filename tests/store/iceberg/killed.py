"""A process that registers new snapshots and is killed at one of its commits: `python -m tests.store.iceberg.killed TOML TENANT N WHEN`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog

from pipelines.backup.iceberg import open_tables, register_new
from pipelines.settings.config_file import load_settings
from pipelines.store.stores import open_data

COMMIT = SqlCatalog.commit_table


def main(config: str, tenant: str, number: int, when: str) -> None:
    """Kill this process (kill -9) before or after commit `number`."""
    commits = 0

    def commit(self: SqlCatalog, *arguments: Any) -> Any:
        nonlocal commits
        commits += 1
        if (commits, when) == (number, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        done = COMMIT(self, *arguments)
        if (commits, when) == (number, "after"):
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    SqlCatalog.commit_table = commit  # type: ignore[method-assign]
    settings = load_settings(Path(config))
    data = open_data(settings)
    register_new(open_tables(settings, data), data, tenant)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
