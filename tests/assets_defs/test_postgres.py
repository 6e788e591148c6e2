"""The step that stages into Postgres: what it shows, and that it can be repeated alone."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.settings.loading import load_settings
from tests.assets_defs.installation import DagsterInstallation, plain, red
from tests.postgres import database, postgres_server

KEY = dg.AssetKey(["old", "postgres"])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """An empty database."""
    with postgres_server() as server, database(server) as one:
        yield one


@pytest.fixture
def staging(installation: DagsterInstallation, monkeypatch: pytest.MonkeyPatch) -> DagsterInstallation:
    """The installation, with a database that does not answer."""
    config = installation.folder / "bookferry.toml"
    config.write_text(f'postgres_env = "TEST_POSTGRES"\n{config.read_text()}')
    monkeypatch.setenv("TEST_POSTGRES", "postgresql://me:sesame-open@127.0.0.1:1/nothing")
    installation.settings = load_settings(config)
    return installation


def test_only_the_step_that_failed_is_run_again(
    staging: DagsterInstallation, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup whose load failed has a complete snapshot; the step alone loads it, and nothing is loaded twice (I10)."""
    job = build_definitions(staging.settings).resolve_implicit_global_asset_job_def()
    failed = staging.run("old")
    assert failed.success is False
    assert red(failed) == {("postgres", "newest_is_there")}
    (snapshot,) = staging.snapshots
    assert snapshot.manifest.complete
    assert not [name for name, content in staging.everything_kept() if "sesame-open" in content]
    monkeypatch.setenv("TEST_POSTGRES", address)
    metadata = []
    for _ in range(2):
        done = job.execute_in_process(instance=staging.instance, asset_selection=[KEY])
        (event,) = done.asset_materializations_for_node("old__postgres")
        metadata.append(plain(event.metadata))
    assert metadata[0]["snapshots"] == [snapshot.manifest.snapshot]
    assert {row["table"]: row["rows"] for row in metadata[0]["preview"]}["publications"] == "120"
    assert (metadata[1]["snapshots"], metadata[1]["dagster/row_count"]) == ([], 0)
