"""docs/spec-coverage.md names every test that cites a fact of docs/service.md, and no test that does not exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLES = HERE.parents[1] / "docs" / "spec-coverage.md"

CITATION = re.compile(r"service\.md#([a-z0-9-]+)")
"""How the docstring of a test begins that shows a fact of docs/service.md."""


def rows() -> Iterator[tuple[str, str, list[str]]]:
    """Yields anchor, fact and tests of each row."""
    anchor = ""
    for line in TABLES.read_text("utf-8").splitlines():
        if line.startswith("## "):
            anchor = line.partition("(service.md#")[2].removesuffix(")")
        elif line.startswith("| ") and not line.startswith("| fact"):
            _, fact, tests, _ = re.split(r"(?<!\\)\|", line)
            yield anchor, fact.strip(), re.findall(r"`([^`]+)`", tests)


def docstrings() -> dict[str, str]:
    """Returns the docstring of each test of this folder."""
    return {
        f"{path.name}::{node.name}": ast.get_docstring(node) or ""
        for path in sorted(HERE.glob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_row_names_tests_that_exist() -> None:
    known = docstrings()
    assert [(fact, tests) for _, fact, tests in rows() if not tests or set(tests) - known.keys()] == []


@pytest.mark.long
def test_every_test_that_cites_a_fact_is_in_the_section_of_its_anchor() -> None:
    named = {(anchor, test) for anchor, _, tests in rows() for test in tests}
    cited = {(match[1], name) for name, text in docstrings().items() if (match := CITATION.match(text))}
    assert len(cited) > 150
    assert sorted(cited - named) == []
