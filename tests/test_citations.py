"""Every citation in code, tests, documents and SQL leads to something in this repository, and nothing else is cited."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.test_docs import anchors

ROOT = Path(__file__).parents[1]
TEXTS = (".py", ".md", ".sql", ".html", ".toml", ".yaml", ".yml", ".js", ".css", ".ipynb")


@cache
def files() -> dict[str, str]:
    """Name → content of each text file of the project, this one apart."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return {
        name: (ROOT / name).read_text("utf-8")
        for name in names
        if name.endswith(TEXTS) and not name.startswith("sandbox/library/") and (ROOT / name) != Path(__file__)
    }


def cited(pattern: str, *, within: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """File and citation of each match, in the files whose names end so."""
    expression = re.compile(pattern)
    return [
        (name, match[1])
        for name, text in files().items()
        if not within or name.endswith(within)
        for match in expression.finditer(text)
    ]


@pytest.mark.long
def test_each_fact_of_the_service_that_is_cited_stands_in_its_document() -> None:
    """`service.md#lists` is a heading of docs/service.md."""
    citations = cited(r"service\.md#([\w-]+)")
    assert len(citations) > 100
    assert [citation for citation in citations if citation[1] not in anchors(ROOT / "docs" / "service.md")] == []


@pytest.mark.long
def test_each_invariant_that_is_cited_stands_in_its_document() -> None:
    """`I8` is a heading of docs/invariants.md, and each of these is cited by a test."""
    headings = set(re.findall(r"^## (I\d+) ", files()["docs/invariants.md"], re.MULTILINE))
    citations = cited(r"\b(I\d{1,2})\b", within=(".py", ".sql", ".html"))
    assert [citation for citation in citations if citation[1] not in headings] == []
    assert {number for name, number in citations if name.startswith("tests/")} == headings
