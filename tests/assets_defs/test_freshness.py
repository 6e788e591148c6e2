"""Dagster shows when a backup is too old, and a partial snapshot does not hide that."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets_defs.freshness import freshness_result, freshness_watch
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from tests.assets_defs.test_definitions import settings_for
from tests.store.snapshot_factory import STARTED_AT, make_snapshot


def evaluated(settings: Settings, now: datetime) -> tuple[bool, str]:
    """Whether the check of `old` passes, and its severity, by the sensor; at the end of a backup it is the same."""
    result: Any = freshness_watch(settings, lambda: now)()
    (event,) = result.asset_events
    check = freshness_result(DataFolder(settings.data), "old", now)
    assert (check.passed, check.description) == (event.passed, event.description)
    assert event.asset_key == dg.AssetKey(["old", "snapshot"])
    return event.passed, event.severity.value


@pytest.mark.parametrize(
    ("newest", "severity"), [("complete", "ERROR"), ("damaged", "ERROR"), ("partial", "ERROR"), ("none", "WARN")]
)
def test_red_after_26_hours_and_not_before(tmp_path: Path, newest: str, severity: str) -> None:
    """From the end of the newest complete backup on; where there is none that can be used, at once. A new library is no error."""
    settings, data = settings_for(tmp_path, "old"), DataFolder(tmp_path / "library-data")
    since = STARTED_AT
    if newest != "none":
        snapshot = make_snapshot(data, complete=newest != "partial")
        since = datetime.fromisoformat(snapshot.manifest.finished_at)
    if newest == "damaged":
        (snapshot.path / "manifest.json").write_text("{")
    results = {hours: evaluated(settings, since + timedelta(hours=hours)) for hours in (1, 25, 26, 27, 50)}
    assert results == {hours: (newest == "complete" and hours <= 26, severity) for hours in results}
