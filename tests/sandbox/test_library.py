"""The real library: its data, its attribution, and how it is loaded."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest

LIBRARY = files("sandbox.library")


@pytest.fixture(scope="module")
def shipped() -> list[dict[str, Any]]:
    lines = gzip.decompress(LIBRARY.joinpath("publications.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def test_every_source_is_attributed(shipped: list[dict[str, Any]]) -> None:
    """ATTRIBUTION.md has the repository and the number of records of each source, and the repository and commit of each file."""
    text = LIBRARY.joinpath("ATTRIBUTION.md").read_text("utf-8")
    for repo, count in Counter(record["_source"]["repo"] for record in shipped).items():
        row = next(line for line in text.splitlines() if line.startswith(f"| [{repo}]"))
        assert f"| {count:,} |" in row
    for file in json.loads(LIBRARY.joinpath("files.json").read_bytes()):
        row = next(line for line in text.splitlines() if line.startswith(f"| {file['filename']} |"))
        assert f"[{file['repo']}]" in row
        assert file["commit"] in row


def test_abstracts_of_others_are_not_shipped(shipped: list[dict[str, Any]]) -> None:
    """Three sources contain abstracts that their licence does not cover."""
    with_abstract = {record["_source"]["repo"] for record in shipped if record["abstract"]}
    assert with_abstract.isdisjoint(
        {"retorquere/zotero-better-bibtex", "greenelab/deep-review", "greenelab/scihub-manuscript"}
    )
    assert with_abstract  # the other sources keep theirs


def test_files_are_what_their_list_says() -> None:
    """Each file has the size and SHA-256 of files.json."""
    for file in json.loads(LIBRARY.joinpath("files.json").read_bytes()):
        content = LIBRARY.joinpath("files", file["filename"]).read_bytes()
        assert len(content) == file["size"]
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
