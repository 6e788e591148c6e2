"""Somebody who materializes every asset of a library wants a backup, and nothing else."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from assets_defs.freshness import CHECK
from pipelines.scopes import SCOPES
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import DataFolder
from tests.backup.other_resources.signing import sign_in
from tests.cli.command import Installation
from tests.sandbox.process import SandboxProcess

UPKEEP = {"migration_plan", "migration", "migration_proof", "sign_in", "drill", "verification"}


def failed(result: dg.ExecuteInProcessResult) -> list[str]:
    return [event.message or "" for event in result.all_events if event.is_failure]


def made(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.asset_key.path[-1] for event in result.get_asset_materialization_events() if event.asset_key}


@pytest.mark.long
def test_materialize_all_is_a_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No migration, renewal of a sign-in, drill or verification; each of them runs where it is selected alone."""
    with SandboxProcess("--tenant=old=real:12", "--tenant=new=empty", "--requests-per-minute", "0") as sandbox:
        installation = Installation.make(tmp_path, sandbox, "old")
        config = installation.add_v3("new", "new")
        sign_in(config, "new", sandbox, "new", SCOPES)
        for name, value in installation.sign_in.items():
            monkeypatch.setenv(name, value)
        definitions = build_definitions(load_settings(config))
        job = definitions.resolve_implicit_global_asset_job_def()
        with dg.DagsterInstance.ephemeral() as instance:
            every = job.execute_in_process(instance=instance, raise_on_error=False)
            assert failed(every) == []
            assert "snapshot" in made(every)
            assert made(every) & UPKEEP == set()
            assert {snapshot.manifest.tenant for snapshot in DataFolder(tmp_path / "library-data").snapshots()} == {
                "old",
                "new",
            }
            logs = [event.user_message for event in instance.all_logs(every.run_id)]
            assert len([line for line in logs if line.startswith("Left out: ")]) >= 4
            alone = [dg.AssetKey(["old", "drill"]), dg.AssetKey(["old", "verification"])]
            chosen = job.execute_in_process(instance=instance, raise_on_error=False, asset_selection=alone)
            assert failed(chosen) == []
            assert made(chosen) == {"drill", "verification"}
            renewed = job.execute_in_process(
                instance=instance, raise_on_error=False, asset_selection=[dg.AssetKey(["new", "sign_in"])]
            )
            assert "gave no refresh token" in str(renewed.failure_data_for_node("new__sign_in"))  # it was tried
            planned = definitions.resolve_job_def("plan_migration").execute_in_process(
                instance=instance, raise_on_error=False, asset_selection=[dg.AssetKey(["new", "migration_plan"])]
            )
            assert not planned.success
            assert (
                "The launchpad of plan_migration lacks source: enter it under ops, new__migration_plan, config."
                in str(planned.failure_data_for_node("new__migration_plan"))
            )


def test_nothing_is_red_before_the_first_backup(tmp_path: Path) -> None:
    """The check of the age is a warning until there was a backup, and an error from then on."""
    config = tmp_path / "bookferry.toml"
    config.write_text(
        'data = "library-data"\n[tenants.old]\nbase_url = "https://library.example.org"\napi = "v2"\n'
        'username_env = "TEST_USER"\npassword_env = "TEST_PASSWORD"\n'
        '[tenants.new]\nbase_url = "https://new.example.org"\napi = "v3"\n'
    )
    definitions = build_definitions(load_settings(config))
    events = []
    with dg.DagsterInstance.ephemeral() as instance:
        for name in ("freshness_watch", "sign_in_watch"):
            watch = definitions.resolve_sensor_def(name)
            result = watch.evaluate_tick(dg.build_sensor_context(instance, definitions=definitions))
            events += [one for one in result.asset_events if isinstance(one, dg.AssetCheckEvaluation)]
    found = [(event.asset_key.path[0], event.check_name, event.passed, event.severity) for event in events]
    warn = dg.AssetCheckSeverity.WARN
    assert found == [("old", CHECK, False, warn), ("new", CHECK, False, warn), ("new", "lasts", False, warn)]
    assert "There is none yet" in (events[0].description or "")
