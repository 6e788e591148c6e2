"""The step that registers snapshots in Iceberg tables: what it shows, and that it can be repeated alone."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.settings.loading import load_settings
from tests.assets_defs.installation import DagsterInstallation, plain, red

pytestmark = pytest.mark.long


KEY = dg.AssetKey(["old", "iceberg"])


def test_only_the_step_that_failed_is_run_again(
    installation: DagsterInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup whose registration failed has a complete snapshot; the step alone registers it, and nothing twice (I10)."""
    config = installation.folder / "bookferry.toml"
    config.write_text(f'{config.read_text()}\n[iceberg]\nuri_env = "TEST_CATALOGUE"\n')
    monkeypatch.setenv("TEST_CATALOGUE", "postgresql://me:sesame-open@127.0.0.1:1/nothing")
    installation.settings = load_settings(config)
    job = build_definitions(installation.settings).resolve_implicit_global_asset_job_def()
    failed = installation.run("old")
    assert failed.success is False
    assert red(failed) == {("iceberg", "newest_is_there")}
    (snapshot,) = installation.snapshots
    assert snapshot.manifest.complete
    assert not [name for name, content in installation.everything_kept() if "sesame-open" in content]
    monkeypatch.setenv("TEST_CATALOGUE", f"sqlite:///{tmp_path}/catalogue.db")
    metadata = []
    for _ in range(2):
        done = job.execute_in_process(instance=installation.instance, asset_selection=[KEY])
        (event,) = done.asset_materializations_for_node("old__iceberg")
        metadata.append(plain(event.metadata))
    assert metadata[0]["snapshots"] == [snapshot.manifest.snapshot]
    assert metadata[0]["catalogue"] == [f"sqlite:///{tmp_path}/catalogue.db, namespace library"]
    assert {row["table"]: row["rows"] for row in metadata[0]["preview"]}["publications"] == "120"
    assert (metadata[1]["snapshots"], metadata[1]["dagster/row_count"]) == ([], 0)
