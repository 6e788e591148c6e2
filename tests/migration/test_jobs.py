"""The jobs of a migration in Dagster: a plan with its summary, an apply that a person must approve, and a verification."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair

pytestmark = pytest.mark.long


def run(pair: LibraryPair, job: str, asset: str, **config: Any) -> dg.ExecuteInProcessResult:
    with dg.DagsterInstance.ephemeral() as instance:
        definition = build_definitions(load_settings(pair.config)).resolve_job_def(job)
        return definition.execute_in_process(
            run_config={"ops": {f"new__{asset}": {"config": config}}},
            instance=instance,
            asset_selection=[dg.AssetKey(["new", asset])],
            raise_on_error=False,
        )


def made(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    (event,) = result.asset_materializations_for_node(f"new__{asset}")
    return {name: value.value for name, value in event.metadata.items()}


def test_a_person_approves_between_plan_and_load(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = made(run(pair, "plan_migration", "migration_plan", source=snapshot.name), "migration_plan")
    assert "publications will be created" in plan["summary"]
    unapproved = run(pair, "apply_migration", "migration", plan=plan["plan"], approval="yes, please")
    assert not unapproved.success
    assert pair.writes() == []
    loaded = run(pair, "apply_migration", "migration", plan=plan["plan"], approval=plan["approval"])
    assert (made(loaded, "migration")["created"], made(loaded, "migration")["complete"]) == (RECORDS, True)
    proved = run(pair, "verify_migration", "migration_proof", plan=plan["plan"])
    assert made(proved, "migration_proof")["equal"] is True
    assert [(check.check_name, check.passed) for check in proved.get_asset_check_evaluations()] == [("equal", True)]
    pair.call("DELETE", f"publications/{pair.publications()[0]['id']}")
    missing = run(pair, "verify_migration", "migration_proof", plan=plan["plan"])
    assert [check.passed for check in missing.get_asset_check_evaluations()] == [False]
