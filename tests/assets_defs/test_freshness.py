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


class Watch:
    """The sensor of an installation, hour after hour."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._cursor: str | None = None

    def evaluate(self, now: datetime) -> tuple[bool, str, str]:
        """Whether the check of `old` passes, its severity and its description."""
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, cursor=self._cursor) as context,
        ):
            result: Any = freshness_watch(self.settings, lambda: now)(context)
        self._cursor = result.cursor
        (event,) = result.asset_events
        check = freshness_result(DataFolder(self.settings.data), "old", now)
        assert (check.passed, check.description) == (event.passed, event.description)
        assert event.asset_key == dg.AssetKey(["old", "snapshot"])
        return event.passed, event.severity.value, event.description


@pytest.mark.parametrize("newest", ["complete", "damaged", "partial", "none"])
def test_red_after_26_hours_and_not_before(tmp_path: Path, newest: str) -> None:
    """From the end of the newest complete backup on; of a library that has none, since it was first seen."""
    watch, data = Watch(settings_for(tmp_path, "old")), DataFolder(tmp_path / "library-data")
    since = STARTED_AT
    if newest in {"complete", "damaged"}:
        snapshot = make_snapshot(data)
        since = datetime.fromisoformat(snapshot.manifest.finished_at)
    watch.evaluate(STARTED_AT)
    if newest == "damaged":
        (snapshot.path / "manifest.json").write_text("{")
    if newest == "partial":
        make_snapshot(data, complete=False)
    severities = {hours: watch.evaluate(since + timedelta(hours=hours))[:2] for hours in (1, 25, 26, 27, 50)}
    assert severities == {
        hours: (newest == "complete" and hours <= 26, "ERROR" if hours > 26 else "WARN") for hours in severities
    }
