"""The job `prune_backups`: there only with a policy, what it says is removed, and a backup under way is left alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.errors import ConfigurationError
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.snapshot_factory import STARTED_AT, make_snapshot

CONFIG = """
data = "library-data"
{retention}
[tenants.old]
base_url = "https://library.example.org"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
"""


def definitions(folder: Path, retention: str) -> dg.Definitions:
    (folder / "bookferry.toml").write_text(CONFIG.format(retention=retention))
    return build_definitions(load_settings(folder / "bookferry.toml"))


def run_job(folder: Path, retention: str = "[retention]\nkeep_daily = 1") -> dg.ExecuteInProcessResult:
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions(folder, retention).resolve_job_def("prune_backups")
        return job.execute_in_process(instance=instance, raise_on_error=False)


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    """Two backups of two libraries."""
    data = DataFolder(tmp_path / "library-data")
    for tenant in ("old", "second"):
        for days in (0, 1):
            make_snapshot(data, tenant=tenant, now=STARTED_AT + timedelta(days=days))
    return data


def names(data: DataFolder) -> list[str]:
    return [one.name for one in data.snapshots()]


def test_nothing_is_removed_without_a_policy(tmp_path: Path) -> None:
    """No job and no schedule that anybody could start by mistake; an empty policy is refused."""
    defs = definitions(tmp_path, "")
    assert "prune_backups" not in [job.name for job in defs.resolve_all_job_defs()]
    with pytest.raises(ConfigurationError, match="retention: does not say what to keep"):
        definitions(tmp_path, "[retention]\nkeep_daily = 0")


def test_a_library_with_a_backup_in_progress_is_skipped(tmp_path: Path, data: DataFolder) -> None:
    """Its library waits for the next time, which the log says; the others do not wait for it."""
    with data.lease("old"):
        result = run_job(tmp_path)
    assert result.success
    assert names(data) == ["old/20261120T020000Z", "old/20261121T020000Z", "second/20261121T020000Z"]
    notes = next(one for one in result.all_events if one.is_successful_output).step_output_data.metadata["notes"].value
    assert notes[0].startswith("The snapshots of old were left as they are until the next time: other runs")


def test_its_own_schedule(tmp_path: Path) -> None:
    schedule = definitions(tmp_path, "[retention]\nkeep_last = 1").resolve_schedule_def("prune_backups_schedule")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 15 * * SUN", "UTC")
    schedule = definitions(tmp_path, 'nightly_at = "16:10"\n[retention]\nkeep_last = 1').resolve_schedule_def(
        "prune_backups_schedule"
    )
    assert schedule.cron_schedule == "10 5 * * SUN"
