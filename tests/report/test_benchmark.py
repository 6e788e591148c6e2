"""The benchmark of a report measures what it says: the second night is compared with the first, and its edited records are found."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report import EDITED, FIRST_NIGHT, make_snapshots, report_of
from pipelines.report.build import make_report
from pipelines.store.snapshots.snapshots import DataFolder


def test_both_nights_are_reported(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    make_snapshots(data, 1000)
    first = report_of(data, "first")
    assert first["publications"] == 1000
    assert 0 < first["to_do"] <= first["lines"]
    report = make_report(data, data.snapshots()[-1], now=FIRST_NIGHT)
    changes = report.nights[-1].last_night
    assert changes is not None
    assert (changes.added, changes.changed, changes.removed) == (0, 1000 // EDITED, 0)
