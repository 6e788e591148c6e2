"""The job `prune_backups`: there only with a policy, what it says is removed, and a backup under way is left alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.errors import ConfigurationError
from pipelines.store.snapshots.snapshots import DataFolder
from tests.assets_defs.test_definitions import settings_for
from tests.store.snapshot_factory import STARTED_AT, make_snapshot


def definitions(folder: Path, retention: str) -> dg.Definitions:
    return build_definitions(settings_for(folder, "old", more=retention))


def test_nothing_is_removed_without_a_policy(tmp_path: Path) -> None:
    """No job and no schedule that anybody could start by mistake; an empty policy is refused."""
    defs = definitions(tmp_path, "")
    assert "prune_backups" not in [job.name for job in defs.resolve_all_job_defs()]
    with pytest.raises(ConfigurationError, match="retention: does not say what to keep"):
        definitions(tmp_path, "[retention]\nkeep_daily = 0")


def test_a_library_with_a_backup_in_progress_is_skipped(tmp_path: Path) -> None:
    """Its library waits for the next time, which the log says; the others do not wait for it."""
    data = DataFolder(tmp_path / "library-data")
    for tenant in ("old", "second"):
        for days in (0, 1):
            make_snapshot(data, tenant=tenant, now=STARTED_AT + timedelta(days=days))
    job = definitions(tmp_path, "[retention]\nkeep_daily = 1").resolve_job_def("prune_backups")
    with data.lease("old"), dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance)
    assert [snapshot.name for snapshot in data.snapshots()] == [
        "old/20261120T020000Z",
        "old/20261121T020000Z",
        "second/20261121T020000Z",
    ]
    output = next(event for event in result.all_events if event.is_successful_output)
    notes = output.step_output_data.metadata["notes"].value
    assert notes[0].startswith("The snapshots of old were left as they are until the next time: other runs")
