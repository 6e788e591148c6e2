"""The `dagster.yaml` that Bookferry writes once."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from cli.dagster_instance import INSTANCE, dagster_home
from pipelines.settings.loading import load_settings


def home_of(folder: Path) -> Path:
    """The Dagster home of a configuration."""
    (folder / "bookferry.toml").write_text("")
    return dagster_home(load_settings(folder / "bookferry.toml"))


def test_ten_libraries_are_read_at_once(tmp_path: Path) -> None:
    with dg.DagsterInstance.from_config(str(home_of(tmp_path))) as instance:
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        assert queue.max_concurrent_runs == 10


def test_what_a_person_wrote_stays(tmp_path: Path) -> None:
    """The file is theirs once it is there."""
    path = home_of(tmp_path) / "dagster.yaml"
    content = INSTANCE.replace("max_concurrent_runs: 10", "max_concurrent_runs: 40")
    path.write_text(content)
    home_of(tmp_path)
    assert path.read_text() == content
