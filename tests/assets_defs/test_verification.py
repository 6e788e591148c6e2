"""The job `verify_backups`: red when a file is not as it was published, and dated."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.settings.config_file import load_settings
from pipelines.store.maintenance.results import VERIFICATIONS
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.store.snapshot_factory import make_snapshot

CONFIG = """
data = "library-data"
{more}
[tenants.old]
base_url = "https://library.example.org"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
"""


def definitions(folder: Path, more: str = "") -> dg.Definitions:
    (folder / "bookferry.toml").write_text(CONFIG.format(more=more))
    return build_definitions(load_settings(folder / "bookferry.toml"))


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """The only one."""
    return make_snapshot(DataFolder(tmp_path / "library-data"))


def run_job(folder: Path) -> dg.ExecuteInProcessResult:
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions(folder).resolve_job_def("verify_backups")
        return job.execute_in_process(instance=instance, raise_on_error=False)


def test_a_good_snapshot(tmp_path: Path, snapshot: Snapshot) -> None:
    """Observed beside its asset, and dated for the command line."""
    result = run_job(tmp_path)
    assert result.success
    (event,) = [one for one in result.all_events if one.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    assert event.asset_key == dg.AssetKey(["old", "snapshot"])
    (materialization,) = result.asset_materializations_for_node("old__verification")
    assert (materialization.metadata["snapshot"].value, materialization.metadata["files"].value) == (
        snapshot.manifest.snapshot,
        7,
    )
    assert [(one.check_name, one.passed) for one in result.get_asset_check_evaluations()] == [("intact", True)]
    saved = VERIFICATIONS.last(DataFolder(tmp_path / "library-data"), *snapshot.name.split("/"))
    assert saved is not None
    assert saved.ok


@pytest.mark.long
def test_a_damaged_one_fails_the_run(tmp_path: Path, snapshot: Snapshot) -> None:
    """With the name of the file."""
    file = snapshot.path / "publication_authors.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    result = run_job(tmp_path)
    assert not result.success
    (failed,) = [one for one in result.all_events if one.is_step_failure]
    assert str(file) in str(failed.step_failure_data.user_failure_data)
    assert [(one.check_name, one.passed) for one in result.get_asset_check_evaluations()] == [("intact", False)]
    assert result.asset_materializations_for_node("old__verification") == [], "it would count as verified"
    saved = VERIFICATIONS.last(DataFolder(tmp_path / "library-data"), *snapshot.name.split("/"))
    assert saved is not None
    assert not saved.ok


def test_one_library_s_damage_is_not_another_s(tmp_path: Path, snapshot: Snapshot) -> None:
    """Each tenant is verified; one without any complete snapshot is red, too: there is nothing that could be restored."""
    make_snapshot(DataFolder(tmp_path / "library-data"), tenant="second")
    (snapshot.path / "manifest.json").write_text("{")
    more = "".join(CONFIG.partition("{more}")[2].replace("old", name) for name in ("second", "third"))
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions(tmp_path, f"{more}").resolve_job_def("verify_backups")
        result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert {one.step_key for one in result.all_events if one.is_step_failure} == {
        "old__verification",
        "third__verification",
    }
    assert len(result.asset_materializations_for_node("second__verification")) == 1


@pytest.mark.parametrize(
    ("more", "cron"),
    [("", "0 12 * * SUN"), ('nightly_at = "23:30"', "30 9 * * SUN")],
)
def test_its_own_schedule(tmp_path: Path, more: str, cron: str) -> None:
    schedule = definitions(tmp_path, more).resolve_schedule_def("verify_backups_schedule")
    assert (schedule.cron_schedule, schedule.execution_timezone) == (cron, "UTC")
    assert schedule.job_name == "verify_backups"
