"""The benchmark of matching measures what it says: nine tenths are found in both, and the edited ones differ."""

from __future__ import annotations

from pathlib import Path

from benchmarks.matching import measure


def test_the_benchmark_matches_what_is_in_both(tmp_path: Path) -> None:
    figures = measure(tmp_path, 1000)
    assert figures["actions"] == {"conflict": 9, "create": 100, "unchanged": 891}
