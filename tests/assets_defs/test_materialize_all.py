"""Somebody who materializes every asset of a library wants a backup, and nothing else."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.inventory import RESOURCES
from pipelines.records.tables.registry import STAGED
from pipelines.scopes import SCOPES
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import DataFolder
from tests.assets_defs.test_definitions import settings_for
from tests.backup.other_resources.signing import sign_in
from tests.cli.command import Installation
from tests.sandbox.process import SandboxProcess

OF_TIME = {"nothing_new_announced", "lasts"}
"""Checks that warn of what is to come."""


def failed(result: dg.ExecuteInProcessResult) -> list[str]:
    return [event.message or "" for event in result.all_events if event.is_failure]


def made(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.asset_key.path[-1] for event in result.get_asset_materialization_events() if event.asset_key}


@pytest.mark.long
def test_materialize_all_is_a_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every table of every resource. No migration, renewal of a sign-in, drill or verification: they run where they are selected alone.

    Names and addresses of people stay in the tables: Dagster's history holds none (I10).
    """
    with SandboxProcess("--tenant=old=real:12", "--tenant=new=real:12", "--requests-per-minute", "0") as sandbox:
        installation = Installation.make(tmp_path, sandbox, "old")
        config = installation.add_v3("new", "new")
        sign_in(config, "new", sandbox, "new", SCOPES)
        for name, value in installation.sign_in.items():
            monkeypatch.setenv(name, value)
        definitions = build_definitions(load_settings(config))
        job = definitions.resolve_implicit_global_asset_job_def()
        with dg.DagsterInstance.ephemeral() as instance:
            backup = job.execute_in_process(instance=instance, raise_on_error=False)
            assert failed(backup) == []
            tables = {table.name for tables in STAGED.values() for table in tables}
            raw = {f"raw_{resource}" for resource in RESOURCES}
            assert made(backup) == tables | raw | {"files", "snapshot", "report"}
            shown = [str(event.materialization.metadata) for event in backup.get_asset_materialization_events()]
            assert not any("@library.example" in metadata for metadata in shown)
            assert all(
                check.passed for check in backup.get_asset_check_evaluations() if check.check_name not in OF_TIME
            )
            snapshots = DataFolder(tmp_path / "library-data").snapshots()
            assert {(snapshot.manifest.tenant, *snapshot.counts) for snapshot in snapshots} == {
                ("old", "publications"),
                ("new", *RESOURCES),
            }
            assert all(snapshot.manifest.complete for snapshot in snapshots)
            logs = [event.user_message for event in instance.all_logs(backup.run_id)]
            assert len([line for line in logs if line.startswith("Left out: ")]) >= 4
            selection = [dg.AssetKey(["old", "drill"]), dg.AssetKey(["old", "verification"])]
            chosen = job.execute_in_process(instance=instance, raise_on_error=False, asset_selection=selection)
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
                "The launchpad of plan_migration lacks source: enter that under ops, new__migration_plan, config."
                in str(planned.failure_data_for_node("new__migration_plan"))
            )


def test_a_sign_in_is_not_red_before_there_was_one(tmp_path: Path) -> None:
    """Its check is a warning until somebody signed in, and an error from then on."""
    definitions = build_definitions(
        settings_for(tmp_path, "old", "new", more='[tenants.v3]\nbase_url="https://v3.example.org"\napi="v3"')
    )
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance, definitions=definitions)
        [event] = definitions.resolve_sensor_def("sign_in_watch").evaluate_tick(context).asset_events
    assert isinstance(event, dg.AssetCheckEvaluation)
    check = event.asset_key.path[0], event.check_name, event.passed, event.severity
    assert check == ("v3", "lasts", False, dg.AssetCheckSeverity.WARN)
