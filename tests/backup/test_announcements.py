"""service.md#deprecation and #shutdown: what the service announces reaches the notes of a backup, and the days that v2 has left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.store.snapshots.manifest import Manifest
from tests.backup.runner import BackupRunner
from tests.sandbox.process import SandboxProcess
from tests.service.manual_clock import MIDNIGHT, ManualClock

Backups = Callable[[datetime], Manifest]

LOUD = "NEW: the service announces for the first time as deprecated: {} (X-API-Deprecation). Replace it in programs of your own."
EARLY = datetime(2026, 8, 1, tzinfo=UTC)
"""A day on which v2 has more than 60 days left."""


def runner_on(folder: Path, sandbox: SandboxProcess, day: datetime) -> BackupRunner:
    """Returns a runner of backups on that day."""
    clock = ManualClock((day - MIDNIGHT) / timedelta(seconds=1))
    return BackupRunner(folder, sandbox.base_url(), clock=clock)


@pytest.fixture
def back_up(tmp_path: Path, sandbox: SandboxProcess) -> Backups:
    """Backs up on a given day, and returns the manifest."""
    return lambda day: runner_on(tmp_path, sandbox, day).back_up(run=f"{day:%Y%m%d}", with_files=False).manifest


def announcements(manifest: Manifest) -> list[str]:
    """Returns the notes about deprecations."""
    return [note for note in manifest.notes if "announces" in note]


@pytest.mark.long
def test_a_new_name_and_a_new_day_are_loud(back_up: Backups, sandbox: SandboxProcess) -> None:
    """Compared with the snapshots before; what was known already stays quiet."""
    first = back_up(EARLY)
    assert announcements(first) == first.news == [LOUD.format("import_state")]
    assert first.complete
    sandbox.change(variations={"announced": "abstract; sunset=2026-12-01"})
    second = back_up(EARLY + timedelta(days=1))
    assert announcements(second) == [
        LOUD.format("abstract (on 2026-12-01)"),
        "The service announces as deprecated: import_state (since 2026-08-01).",
    ]
    sandbox.change(variations={"announced": "abstract; sunset=2026-11-01"})
    third = back_up(EARLY + timedelta(days=2))
    assert third.news == [LOUD.format("abstract (on 2026-11-01)")]
    fourth = back_up(EARLY + timedelta(days=3))
    assert fourth.news == []
    assert announcements(fourth) == [
        "The service announces as deprecated: abstract (on 2026-11-01, since 2026-08-03), import_state (since 2026-08-01)."
    ]


@pytest.mark.parametrize(
    ("day", "days_left", "expected"),
    [
        (datetime(2026, 11, 1, 23, 59, tzinfo=UTC), 60, "Version 2 of the API ends in 60 days, on 31 December 2026."),
        (datetime(2026, 12, 30, tzinfo=UTC), 1, "Version 2 of the API ends in 1 day, on 31 December 2026."),
        (datetime(2026, 12, 31, 23, tzinfo=UTC), 0, "Version 2 of the API ends today, on 31 December 2026."),
        (
            datetime(2027, 1, 3, tzinfo=UTC),
            -3,
            "Version 2 of the API was due to end on 31 December 2026, 3 days ago, and may stop at any moment.",
        ),
    ],
)
def test_the_days_that_v2_has_left(back_up: Backups, day: datetime, days_left: int, expected: str) -> None:
    """Each backup says it, from 60 days before the end on."""
    early = back_up(datetime(2026, 10, 31, tzinfo=UTC))
    assert (early.days_left, [note for note in early.notes if note.startswith("Version 2")]) == (None, [])
    manifest = back_up(day)
    assert manifest.days_left == days_left
    [note] = [note for note in manifest.notes if note.startswith("Version 2")]
    assert note == (
        f"{expected} Move to version 3: run `bookferry migrate plan old TARGET`, or only sign in with it (set api = \"v3\" for 'old' in "
        "bookferry.toml, then run `bookferry login old`)."
    )
