"""The benchmarks measure what they say: their server pages as the service does, and each of them runs to its table."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, with_tables
from benchmarks.measured import ROOT, server
from benchmarks.publications import Publications


@pytest.mark.parametrize(("asked", "size"), [("", 25), ("?per_page=50", 50), ("?per_page=500", 50)])
def test_walking_the_next_links_reads_each_record_once(asked: str, size: int) -> None:
    """service.md#lists: 25 entries by default, 50 at most; while a next link exists, more pages remain."""
    with server("--records", "210") as (base_url, _end):
        address: str | None = f"{base_url}/api/v2/publications{asked}"
        records, pages = [], 0
        while address is not None:
            with urllib.request.urlopen(address, timeout=100) as response:
                records += json.load(response)["records"]
                links = {rel: url for url, rel in re.findall(r'<([^>]+)>; rel="(\w+)"', response.headers["Link"])}
                assert response.headers["X-Total"] == "210"
            pages, address = pages + 1, links.get("next")
    assert pages == -(-210 // size)
    assert len({record["id"] for record in records}) == len(records) == 210
    generated = Publications(210)
    assert records == [json.loads(generated.json(number, number + 1)) for number in range(210)]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_benchmark_runs_to_its_table(tmp_path: Path) -> None:
    """Each checks that its peers copied or loaded all records."""
    output = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", str(output)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    results = json.loads(output.read_text("utf-8"))
    assert list(results) == list(BENCHMARKS)
    assert results["plan"]["figures"]["actions"] == {"conflict": 5, "create": 50, "unchanged": 445}
    page = "".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in BENCHMARKS)
    assert with_tables(page, results).count(results["start"]["machine"]) == len(BENCHMARKS)
