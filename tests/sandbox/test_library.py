"""The real library: its data, its attribution, and how it is loaded."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from sandbox.library.attribution import FILE_SOURCES, SOURCES
from sandbox.library.build import build
from sandbox.library.seed import IDENTIFIER_TYPES, service_date

LIBRARY = files("sandbox.library")


@pytest.fixture(scope="module")
def shipped() -> list[dict[str, Any]]:
    lines = gzip.decompress(LIBRARY.joinpath("publications.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("found", "date"),
    [
        ("1983", "1983-01-01"), ("2017-08", "2017-08-01"), ("2020-02-29", "2020-02-29"), ("2021-02-29", None),
        ("2017-13", None), ("0000", None), ("-750", None), ("n.d.", None), ("", None), (None, None), ("2018.0", None),
        ("12/1/2018", None), ("１９８３", None),
    ],
)  # fmt: skip
def test_dates(found: str | None, date: str | None) -> None:
    """A year becomes 1 January, a month its first day; the service does not know any other date."""
    assert service_date(found) == date


def test_every_source_is_attributed(shipped: list[dict[str, Any]]) -> None:
    """ATTRIBUTION.md has repository, commit, licence and number of records of each source."""
    text = LIBRARY.joinpath("ATTRIBUTION.md").read_text("utf-8")
    for repo, count in Counter(record["_source"]["repo"] for record in shipped).items():
        row = next(line for line in text.splitlines() if line.startswith(f"| [{repo}]"))
        assert f"/tree/{SOURCES[repo].commit})" in row
        assert f"| {count:,} |" in row
    for file in json.loads(LIBRARY.joinpath("files.json").read_bytes()):
        row = next(line for line in text.splitlines() if line.startswith(f"| {file['filename']} |"))
        assert file["commit"] in row
        assert FILE_SOURCES[file["repo"]].licence in row


def test_abstracts_of_others_are_not_shipped(shipped: list[dict[str, Any]]) -> None:
    """Three sources contain abstracts that their licence does not cover."""
    with_abstract = {record["_source"]["repo"] for record in shipped if record["abstract"]}
    assert {repo for repo, source in SOURCES.items() if not source.abstracts} & with_abstract == set()
    assert with_abstract  # the other sources keep theirs


def test_files_are_what_their_list_says() -> None:
    """Each file has the size and SHA-256 of files.json."""
    for file in json.loads(LIBRARY.joinpath("files.json").read_bytes()):
        content = LIBRARY.joinpath("files", file["filename"]).read_bytes()
        assert len(content) == file["size"]
        assert hashlib.sha256(content).hexdigest() == file["sha256"]


def test_building_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    """The build depends on its input only, not on time, set order or paths."""
    collected = tmp_path / "collected"
    (collected / "files").mkdir(parents=True)
    (collected / "files" / "a.pdf").write_bytes(b"%PDF-")
    (collected / "files.json").write_text(json.dumps([_file("a.pdf")]))
    lines = "".join(json.dumps(_record(number)) + "\n" for number in range(80))
    (collected / "publications.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    results = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        build(collected, tmp_path / name)
        results.append(
            {path.name: path.read_bytes() for path in sorted((tmp_path / name).rglob("*")) if path.is_file()}
        )
    assert results[0] == results[1]
    record = json.loads(gzip.decompress(results[0]["publications.jsonl.gz"]).splitlines()[0])
    assert record["abstract"] is None
    assert record["_source"] == {"repo": "greenelab/deep-review", "path": "p", "key": "0", "licence": "CC0-1.0"}


def _file(name: str) -> dict[str, Any]:
    source = {"repo": "w3c/epubcheck", "path": name, "commit": "0" * 40, "licence": "BSD-3-Clause"}
    return {"filename": name, "size": 5, "mime_type": "application/pdf", "encoding": None, "sha256": "", **source}


def _record(number: int) -> dict[str, Any]:
    source = {"repo": "greenelab/deep-review", "path": "p", "key": str(number), "licence": "CC0-1.0", "raw": {"x": "y"}}
    empty = dict.fromkeys(("published_on", *IDENTIFIER_TYPES))
    return {
        "title": "T", "publishable_type": "Report", "abstract": "A", "authors": [], "categories": [],
        **empty, "_source": source,
    }  # fmt: skip
