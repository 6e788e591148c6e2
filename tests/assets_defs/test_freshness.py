"""Dagster shows when a backup is too old, and a partial snapshot does not hide that."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.freshness import CronFreshnessPolicy

from assets_defs.definitions import build_definitions
from assets_defs.freshness import freshness_result, freshness_watch
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.snapshot_factory import STARTED_AT, make_snapshot

CONFIG = """
data = "library-data"
timezone = "Europe/Vienna"
{more}
[tenants.old]
base_url = "https://library.example.org"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
"""


def settings_in(folder: Path, more: str = "") -> Settings:
    (folder / "bookferry.toml").write_text(CONFIG.format(more=more))
    return load_settings(folder / "bookferry.toml")


@pytest.mark.parametrize(
    ("more", "backup", "verification"),
    [
        ("", "0 14 * * *", "0 0 * * MON"),
        ('nightly_at = "23:30"', "30 11 * * *", "30 21 * * SUN"),
    ],
)
def test_deadlines_follow_the_schedules(tmp_path: Path, more: str, backup: str, verification: str) -> None:
    """Half a day after the run begins, in the same zone: a million records take 5.6 hours."""
    defs = build_definitions(settings_in(tmp_path, more))
    policies = {spec.key.path[-1]: spec.freshness_policy for spec in defs.resolve_all_asset_specs()}
    for name, deadline in (("snapshot", backup), ("verification", verification)):
        policy = policies[name]
        assert isinstance(policy, CronFreshnessPolicy)
        assert (policy.deadline_cron, policy.timezone) == (deadline, "Europe/Vienna")
        assert policy.lower_bound_delta == timedelta(hours=12)


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
    watch, data = Watch(settings_in(tmp_path)), DataFolder(tmp_path / "library-data")
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
