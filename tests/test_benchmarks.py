"""The benchmarks run to their tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import with_tables
from benchmarks.measured import ROOT

QUICKEST = ["backup", "plan", "report"]
"""The others take as long again as these, and share their servers and libraries."""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_benchmark_runs_to_its_table(tmp_path: Path) -> None:
    """Each checks that its peers copied or loaded all records."""
    output = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", *QUICKEST, "--output", str(output)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    results = json.loads(output.read_text("utf-8"))
    assert list(results) == QUICKEST
    assert results["plan"]["figures"]["actions"] == {"conflict": 5, "create": 50, "unchanged": 445}
    page = "".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in QUICKEST)
    assert with_tables(page, results).count(results["plan"]["machine"]) == len(QUICKEST)
