"""The `dagster.yaml` that Bookferry writes once."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from cli.dagster_instance import dagster_home
from pipelines.settings.config_file import load_settings


def home_of(folder: Path) -> Path:
    """The Dagster home of a configuration."""
    (folder / "bookferry.toml").write_text("")
    return dagster_home(load_settings(folder / "bookferry.toml"))


def test_ten_libraries_are_read_at_once(tmp_path: Path) -> None:
    with dg.DagsterInstance.from_config(str(home_of(tmp_path))) as instance:
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        assert queue.max_concurrent_runs == 10
