"""The steps that stage into Postgres and register in Iceberg tables: what they show, and that each can be repeated alone."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.settings.config_file import load_settings
from tests.assets_defs.installation import DagsterInstallation, plain, red
from tests.postgres import database, postgres_server

UNREACHABLE = "postgresql://me:sesame-open@127.0.0.1:1/nothing"


@pytest.mark.long
@pytest.mark.parametrize("step", ["postgres", pytest.param("iceberg", marks=pytest.mark.long)])
def test_only_the_step_that_failed_is_run_again(
    installation: DagsterInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A backup whose step failed has a complete snapshot; the step alone does its work, and nothing twice (I10)."""
    config = installation.folder / "bookferry.toml"
    named = 'postgres_env = "TEST_PLACE"\n{}' if step == "postgres" else '{}\n[iceberg]\nuri_env = "TEST_PLACE"\n'
    config.write_text(named.format(config.read_text()))
    monkeypatch.setenv("TEST_PLACE", UNREACHABLE)
    installation.settings = load_settings(config)
    job = build_definitions(installation.settings).resolve_implicit_global_asset_job_def()
    failed = installation.run("old")
    assert failed.success is False
    assert red(failed) == {(step, "newest_is_there")}
    (snapshot,) = installation.snapshots
    assert snapshot.manifest.complete
    assert not [name for name, content in installation.kept_texts().items() if "sesame-open" in content]
    metadata = []
    with postgres_server() as server, database(server) as address:
        monkeypatch.setenv("TEST_PLACE", address if step == "postgres" else f"sqlite:///{tmp_path}/catalogue.db")
        for _ in range(2):
            result = job.execute_in_process(
                instance=installation.instance, asset_selection=[dg.AssetKey(["old", step])]
            )
            (event,) = result.asset_materializations_for_node(f"old__{step}")
            metadata.append(plain(event.metadata))
    assert metadata[0]["snapshots"] == [snapshot.manifest.snapshot]
    assert metadata[0].get("catalogue", []) == (
        [f"sqlite:///{tmp_path}/catalogue.db, namespace library"] if step == "iceberg" else []
    )
    assert {row["table"]: row["rows"] for row in metadata[0]["preview"]}["publications"] == "120"
    assert (metadata[1]["snapshots"], metadata[1]["dagster/row_count"]) == ([], 0)
