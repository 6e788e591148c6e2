"""The `dagster.yaml` that Bookferry writes: how many libraries are read at once follows from bookferry.toml."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from cli.dagster_instance import FOLLOWS, INSTANCE, dagster_home
from pipelines.errors import ConfigurationError
from pipelines.settings.loading import load_settings


def home_of(folder: Path, libraries: int, setting: str = "") -> Path:
    """The Dagster home of a configuration with so many libraries; each of them has two tenants."""
    tenants = "".join(
        f'[tenants.t{number}_{api}]\nbase_url = "https://l{number}.example.org"\napi = "{api}"\n'
        for number in range(libraries)
        for api in ("v2", "v3")
    )
    (folder / "bookferry.toml").write_text(f"{setting}\n{tenants}")
    return dagster_home(load_settings(folder / "bookferry.toml"))


def runs_at_once(home: Path) -> int | None:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        return queue.max_concurrent_runs


@pytest.mark.parametrize(
    ("libraries", "setting", "runs"),
    [(1, "", 4), (7, "", 7), (40, "", 10), (40, "libraries_at_once = 40", 40), (7, "libraries_at_once = 1", 1)],
)
def test_the_number_of_libraries_read_at_once_follows_the_configuration(
    tmp_path: Path, libraries: int, setting: str, runs: int
) -> None:
    assert runs_at_once(home_of(tmp_path, libraries, setting)) == runs


def test_a_changed_configuration_changes_the_number(tmp_path: Path) -> None:
    home_of(tmp_path, 1)
    home = home_of(tmp_path, 9)
    assert runs_at_once(home) == 9
    written = (home / "dagster.yaml").stat().st_mtime_ns
    home_of(tmp_path, 9)
    assert (home / "dagster.yaml").stat().st_mtime_ns == written


@pytest.mark.parametrize("change", [(FOLLOWS, ""), ("max_concurrent_runs: 4", "max_concurrent_runs: 2")])
def test_what_a_person_wrote_stays(tmp_path: Path, change: tuple[str, str]) -> None:
    """Another file altogether, or our line without its comment."""
    home = home_of(tmp_path, 1)
    content = (
        INSTANCE.replace(*change)
        .replace(FOLLOWS, "")
        .replace("freshness: {enabled: true}", "freshness: {enabled: false}")
    )
    (home / "dagster.yaml").write_text(content)
    home_of(tmp_path, 9)
    assert (home / "dagster.yaml").read_text() == content


def test_a_number_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="libraries_at_once"):
        home_of(tmp_path, 1, "libraries_at_once = 0")
