"""The schedules: one backup for each tenant and night, in the configured zone, never for a past night; and what follows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from dagster._utils.schedules import schedule_execution_time_iterator

from assets_defs.definitions import build_definitions
from assets_defs.schedules import nightly_backup_schedule
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import TenantSettings
from tests.assets_defs import test_definitions

VIENNA = ZoneInfo("Europe/Vienna")


def settings_for(*tenants: str, at: str = "02:00", zone: str = "Europe/Vienna") -> Settings:
    library = TenantSettings(base_url="https://library.example.org", api="v2")
    return Settings(Path("bookferry.toml"), Path("library-data"), zone, at, dict.fromkeys(tenants, library))


def evaluate(settings: Settings, tick: datetime, now: datetime) -> list[dg.RunRequest | dg.SkipReason]:
    """The result of the schedule for `tick`, evaluated at `now`."""
    schedule = nightly_backup_schedule(settings, now=lambda: now)
    with dg.build_schedule_context(scheduled_execution_time=tick) as context:
        return list(schedule(context))


def test_one_run_a_tenant() -> None:
    """A failure of one library does not affect another."""
    tick = datetime(2026, 11, 20, 2, tzinfo=VIENNA)
    requests = evaluate(settings_for("old", "new"), tick, tick)
    assert [request.run_key for request in requests] == ["old 2026-11-20T02:00+0100", "new 2026-11-20T02:00+0100"]
    assert [request.asset_selection for request in requests] == [
        [dg.AssetKey([name, "snapshot"])] for name in ("old", "new")
    ]
    assert [request.tags["bookferry/tenant"] for request in requests] == ["old", "new"]
    assert not any(request.run_config for request in requests)
    assert evaluate(settings_for(), tick, tick) == []


@pytest.mark.parametrize(
    ("at", "crons"),
    [
        ("02:00", ("0 2 * * *", "0 12 * * SUN", "0 15 * * SUN")),
        ("23:30", ("30 23 * * *", "30 9 * * SUN", "30 12 * * SUN")),
    ],
)
def test_every_schedule_follows_the_time_of_the_night(tmp_path: Path, at: str, crons: tuple[str, ...]) -> None:
    """In the configured zone."""
    more = f'timezone = "America/St_Johns"\nnightly_at = "{at}"\n[retention]\nkeep_last = 1'
    definitions = build_definitions(test_definitions.settings_for(tmp_path, "old", more=more))
    for job, times in zip(("nightly_backup", "verify_backups", "prune_backups"), crons, strict=True):
        schedule = definitions.resolve_schedule_def(f"{job}_schedule")
        timing = schedule.job_name, schedule.cron_schedule, schedule.execution_timezone
        assert timing == (job, times, "America/St_Johns")
        assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING


@pytest.mark.parametrize(
    ("at", "late", "runs"),
    [
        ("02:00", timedelta(), True),
        ("02:00", timedelta(minutes=5), True),
        ("02:00", timedelta(hours=21, minutes=59), True),  # the machine was off until the evening
        ("02:00", timedelta(hours=22, minutes=1), False),
        ("02:00", timedelta(days=5), False),
        ("23:59", timedelta(seconds=75), True),  # evaluated after midnight
        ("23:59", timedelta(minutes=59), True),
        ("23:59", timedelta(minutes=61), False),
        ("00:00", timedelta(hours=23, minutes=59), True),
        ("00:00", timedelta(days=1, minutes=1), False),
    ],
)
def test_a_missed_night_is_skipped(at: str, late: timedelta, runs: bool) -> None:
    """The scheduler replays up to five missed nights; a backup captures only the present, so only the latest one is run."""
    tick = datetime.fromisoformat(f"2026-11-20T{at}").replace(tzinfo=VIENNA)
    [decision] = evaluate(settings_for("old", at=at), tick, (tick.astimezone(UTC) + late))
    if runs:
        assert isinstance(decision, dg.RunRequest)
    else:
        assert isinstance(decision, dg.SkipReason)
        assert decision.skip_message == "The night of 2026-11-20 was missed. No backup can be made for it later."


@pytest.mark.parametrize("at", ["02:30", "00:00"])
@pytest.mark.parametrize("change", [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)])
@pytest.mark.parametrize("zone", ["Europe/Vienna", "Australia/Lord_Howe"])
def test_one_run_a_day_across_clock_changes(at: str, change: datetime, zone: str) -> None:
    """The night on which 02:00 does not exist has one run, and so has the one on which it comes twice."""
    settings = settings_for("old", at=at, zone=zone)
    schedule = nightly_backup_schedule(settings)
    start = (change - timedelta(days=30)).timestamp()
    ticks = schedule_execution_time_iterator(start, str(schedule.cron_schedule), zone, ascending=True)
    nights, keys = [], []
    for tick in ticks:
        if tick > change + timedelta(days=30):
            break
        [request] = evaluate(settings, tick, tick + timedelta(seconds=30))
        nights.append(tick.astimezone(ZoneInfo(zone)).date())
        keys.append(request.run_key)
    assert nights == [nights[0] + timedelta(days=number) for number in range(len(nights))]
    assert len(set(keys)) == len(keys) == len(nights) >= 60
