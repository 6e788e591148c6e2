"""The benchmarks measure what they say they do: their server keeps to the service's paging, and Bookferry makes a whole snapshot of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.__main__ import BENCHMARKS, README, RESULTS, differences, with_tables
from benchmarks.backup import Figures, Run, ratios, table
from benchmarks.publications import Publications
from benchmarks.start import timed
from pipelines.publication_fields import IDENTIFIER_FIELDS
from pipelines.records.identifiers.typed_identifiers import identify
from pipelines.records.identifiers.verdicts import GOOD

ROOT = Path(__file__).parents[1]


@contextmanager
def served(records: int) -> Iterator[str]:
    """A server with `records` publications; its base_url."""
    command = [sys.executable, "-m", "benchmarks.server", "--records", str(records)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            word, base_url = process.stdout.readline().split()
            assert word == "ready"
            yield base_url
        finally:
            process.terminate()


def fetch(url: str) -> tuple[list[dict[str, Any]], dict[str, str], int]:
    """Records of a page, its links by rel, and X-Total."""
    with urllib.request.urlopen(url, timeout=100) as response:
        links = {rel: target for target, rel in re.findall(r'<([^>]+)>; rel="(\w+)"', response.headers["Link"])}
        return json.load(response)["records"], links, int(response.headers["X-Total"])


@pytest.mark.parametrize("path", ["publications", "publications/all"])
def test_server_walking_next_links_reads_each_record_once(path: str) -> None:
    """service.md#lists: X-Total is the number of entries; while a next link exists, more pages remain."""
    with served(1010) as base_url:
        url: str | None = f"{base_url}/api/v2/{path}?per_page=50"
        ids, pages = [], 0
        while url is not None:
            records, links, total = fetch(url)
            assert total == 1010
            assert len(records) == (50 if "next" in links else 10)
            assert ("prev" in links) == (pages > 0)
            ids += [record["id"] for record in records]
            pages += 1
            url = links.get("next")
    assert pages == 21
    assert len(set(ids)) == len(ids) == 1010


@pytest.mark.parametrize(
    ("query", "size"), [("", 25), ("?per_page=50", 50), ("?per_page=500", 50), ("?per_page=7&page=2", 7)]
)
def test_server_pages_have_25_records_unless_asked_and_never_more_than_50(query: str, size: int) -> None:
    """service.md#lists: 25 entries by default, 50 at most."""
    with served(200) as base_url:
        records, links, _total = fetch(f"{base_url}/api/v2/publications{query}")
    assert len(records) == size
    assert links["first"].endswith(f"page=1&per_page={size}")
    assert links["last"].endswith(f"page={-(-200 // size)}&per_page={size}")


def test_records_are_the_same_whatever_the_page_size_and_have_the_documented_shape() -> None:
    publications = Publications(300)
    together = json.loads(b"[%b]" % b",".join(publications.json(start, start + 50) for start in range(0, 300, 50)))
    one_by_one = [json.loads(publications.json(number, number + 1)) for number in range(300)]
    assert together == one_by_one
    assert len({record["id"] for record in together}) == 300
    verdicts = Counter((one.type, one.verdict in GOOD) for record in together for one in identify(record))
    assert {kind: verdicts[kind, True] > 20 for kind, _good in verdicts} == dict.fromkeys(IDENTIFIER_FIELDS, True)
    assert 0 < sum(number for (_kind, good), number in verdicts.items() if not good) < 10
    isbns = [record["isbn"] for record in together if record["isbn"]]
    assert len(set(isbns)) == len(isbns)
    fields = {
        "id",
        "title",
        "publishable_type",
        "published_on",
        "abstract",
        "authors",
        "doi",
        "isbn",
        "issn",
        "arxiv_id",
        "pmid",
    }
    assert set(together[0]) == fields | {"import_state", "categories", "cover", "assets"}
    sizes = [len(publications.json(number, number + 1)) for number in range(300)]
    assert min(sizes) >= 1400
    assert max(sizes) <= 3500


def test_flow_makes_a_complete_snapshot_of_every_record(tmp_path: Path) -> None:
    with served(1010) as base_url:
        command = [sys.executable, "-m", "benchmarks.peers.flow", base_url, str(tmp_path)]
        finished = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=240)
    assert json.loads(finished.stdout.splitlines()[-1])["records"] == 1010
    [snapshot] = (tmp_path / "library-data" / "snapshots").glob("tenant=bench/snapshot=*")
    manifest = json.loads((snapshot / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["complete"]
    assert manifest["requests"] == 21
    assert pq.read_metadata(snapshot / "raw" / "publications.parquet").num_rows == 1010
    assert pq.read_metadata(snapshot / "publications.parquet").num_rows == 1010
    raw = pq.read_table(snapshot / "raw" / "publications.parquet").sort_by("id")["payload"].to_pylist()
    assert "[" + ",".join(raw) + "]" == f"[{Publications(1010).json(0, 1010).decode()}]"


def test_ratios_compare_with_dlt_and_memory_with_the_smallest_library() -> None:
    figures = [
        Figures.of([Run(peer, records, seconds, seconds + 1, 2 * seconds, megabytes * 2**20, 0, {})])
        for peer, records, seconds, megabytes in (
            ("bookferry", 100, 1, 200),
            ("dlt", 100, 8, 400),
            ("bookferry", 500, 4, 220),
            ("dlt", 500, 40, 400),
        )
    ]
    compared = ratios(figures)
    assert [one["records_per_second"] for one in compared["to_dlt"] if one["peer"] == "bookferry"] == [8, 10]
    assert compared["memory_growth"]["bookferry"] == pytest.approx(1.1)
    assert "| 500 | bookferry | 125 | 10.00 |" in table({"figures": [asdict(one) for one in figures]})


def test_the_tables_of_the_page_are_made_from_the_results() -> None:
    """`make bench` writes both; nobody types a figure."""
    results = json.loads(RESULTS.read_text("utf-8"))
    assert set(results) <= set(BENCHMARKS)
    page = README.read_text("utf-8")
    assert with_tables(page, results) == page
    assert re.findall(r"<!-- table: (\w+) -->", page) == list(BENCHMARKS)


def test_what_differs_by_more_than_a_tenth_is_said() -> None:
    before = {"loads": [{"seconds": 10, "peak": 300}], "name": "a"}
    after = {"loads": [{"seconds": 11.5, "peak": 301}], "name": "b", "new": 1}
    assert list(differences(before, after)) == ["loads[0].seconds 10 → 11.5"]
    assert list(differences(None, after)) == []


def test_a_command_is_measured_with_the_memory_of_what_it_starts() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(len(bytes([1]) * 200_000_000))'])"
    figures = timed([sys.executable, "-c", program], "/", {})
    assert figures["peak_mib"] > 190
    assert figures["cpu_seconds"] > 0
