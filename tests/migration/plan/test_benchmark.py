"""The benchmarks of matching and of plans measure what it says: nine tenths are found in both, and the edited ones differ."""

from __future__ import annotations

from pathlib import Path

from benchmarks import plan
from benchmarks.matching import measure


def test_the_benchmark_matches_what_is_in_both(tmp_path: Path) -> None:
    figures = measure(tmp_path, 1000)
    assert figures["actions"] == {"conflict": 9, "create": 100, "unchanged": 891}


def test_a_plan_is_measured_from_its_snapshots_to_its_verification(tmp_path: Path) -> None:
    figures = plan.measure(tmp_path, 400)
    assert figures["steps"].keys() == {"plan", "verification"}
    assert figures["actions"] == {"conflict": 4, "create": 40, "unchanged": 356}
