"""Dagster shows when a backup is too old, and a partial snapshot does not hide that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.freshness import CronFreshnessPolicy

from assets_defs.definitions import build_definitions
from assets_defs.freshness import freshness_checks, freshness_watch
from pipelines.backup.flow import Backup
from pipelines.settings.loading import load_settings
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
        ('nightly_at = "23:30"\nverify_at = "04:30"', "30 11 * * *", "30 16 * * *"),
        ('verify_at = "sat 13:00"', "0 14 * * *", "0 1 * * SUN"),
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


def evaluate(settings: Settings, now: datetime) -> tuple[bool, str]:
    """The result of the sensor for `old`; the check must have the same result."""
    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance=instance) as context:
        result: Any = freshness_watch(settings, lambda: now)(context)
    (event,) = result.asset_events
    (check,) = freshness_checks(settings, lambda: now)
    evaluated: Any = check(Backup(settings))
    assert (evaluated.passed, evaluated.description) == (event.passed, event.description)
    assert event.asset_key == dg.AssetKey(["old", "snapshot"])
    return event.passed, event.description


def test_a_partial_snapshot_does_not_count_as_fresh(tmp_path: Path) -> None:
    """The newest complete one is what counts, whatever ran since."""
    settings, data = settings_in(tmp_path), DataFolder(tmp_path / "library-data")
    assert evaluate(settings, STARTED_AT) == (False, "There is none yet. Run `bookferry backup old`.")
    make_snapshot(data, complete=False)
    assert evaluate(settings, STARTED_AT)[0] is False
    make_snapshot(data, now=STARTED_AT + timedelta(days=1))
    for days in (2, 3):
        make_snapshot(data, now=STARTED_AT + timedelta(days=days), complete=False)
    passed, description = evaluate(settings, STARTED_AT + timedelta(days=2, hours=2))
    assert passed, description
    assert "a newer one, old/20261123T020000Z, is not complete" in description
    passed, description = evaluate(settings, STARTED_AT + timedelta(days=3, hours=1))
    assert not passed
    assert description.startswith(
        "The newest complete snapshot, old/20261121T020000Z, is 2 days old. Does the nightly job run?"
    )


def test_a_damaged_manifest_is_no_recent_backup(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    snapshot = make_snapshot(DataFolder(tmp_path / "library-data"), now=datetime.now(UTC).replace(microsecond=0))
    assert evaluate(settings, datetime.now(UTC))[0]
    (snapshot.path / "manifest.json").write_text("{")
    passed, description = evaluate(settings, datetime.now(UTC))
    assert (passed, "manifest.json is damaged" in description) == (False, True)
