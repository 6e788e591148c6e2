"""The job `verify_backups`: each library is verified, and what is not as it was published is red and does not count as verified."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from assets_defs.definitions import build_definitions
from pipelines.store.maintenance.results import VERIFICATIONS
from pipelines.store.snapshots.snapshots import DataFolder
from tests.assets_defs.test_definitions import settings_for
from tests.store.snapshot_factory import make_snapshot


def test_each_library_is_verified_and_one_library_s_damage_is_not_another_s(tmp_path: Path) -> None:
    """One without any complete snapshot is red, too: there is nothing that could be restored."""
    data = DataFolder(tmp_path / "library-data")
    good, damaged, unreadable = (make_snapshot(data, tenant=tenant) for tenant in ("good", "damaged", "unreadable"))
    file = damaged.path / "publication_authors.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    (unreadable.path / "manifest.json").write_text("{")
    settings = settings_for(tmp_path, "damaged", "unreadable", "none", "good")
    with dg.DagsterInstance.ephemeral() as instance:
        job = build_definitions(settings).resolve_job_def("verify_backups")
        result = job.execute_in_process(instance=instance, raise_on_error=False)
    failed = {event.step_key: event.step_failure_data for event in result.all_events if event.is_step_failure}
    assert failed.keys() == {f"{tenant}__verification" for tenant in ("damaged", "unreadable", "none")}
    assert str(file) in str(failed["damaged__verification"].user_failure_data)
    checks = {(*check.asset_key.path, check.check_name): check.passed for check in result.get_asset_check_evaluations()}
    assert checks["good", "verification", "intact"]
    assert not checks["damaged", "verification", "intact"]
    [event] = result.get_asset_materialization_events()
    assert event.asset_key == dg.AssetKey(["good", "verification"]), "another one would count as verified"
    shown = event.materialization.metadata
    assert (shown["snapshot"].value, shown["files"].value) == (good.manifest.snapshot, 7)
    for snapshot in (good, damaged):
        saved = VERIFICATIONS.last(data, *snapshot.name.split("/"))
        assert saved is not None
        assert saved.ok is (snapshot is good), "dated for the command line"
