"""docs/spec-coverage.md is true: what it names exists, and no test that rests on a sentence is missing from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
TABLES = HERE.parents[1] / "docs" / "spec-coverage.md"


def rows() -> Iterator[tuple[str, str, list[str]]]:
    """Section, sentence and tests of each row."""
    section = ""
    for line in TABLES.read_text("utf-8").splitlines():
        if line.startswith("## "):
            section = line
        elif line.startswith("| ") and not line.startswith("| sentence"):
            _, sentence, tests, _ = re.split(r"(?<!\\)\|", line)
            yield section, sentence.strip(), re.findall(r"`([^`]+)`", tests)


def docstrings() -> dict[str, str]:
    """What each test of the folder says that it shows."""
    return {
        f"{path.name}::{node.name}": ast.get_docstring(node) or ""
        for path in sorted(HERE.glob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_row_names_tests_that_exist() -> None:
    known = docstrings()
    assert [(sentence, tests) for _, sentence, tests in rows() if not tests or set(tests) - known.keys()] == []


def test_every_test_that_cites_a_sentence_is_in_a_row() -> None:
    named = {test for _, _, tests in rows() for test in tests}
    cited = {name for name, text in docstrings().items() if text.startswith("Rule")}
    assert sorted(cited - named) == []


def test_no_sentence_is_twice_in_a_section() -> None:
    keys = [(section, sentence) for section, sentence, _ in rows()]
    assert len(keys) > 150
    assert len(keys) == len(set(keys))


def test_every_test_of_this_folder_says_what_it_rests_on() -> None:
    """Every docstring but those of the tests of documents."""
    of_documents = ("test_coverage.py", "test_assumptions.py")
    silent = [name for name, text in docstrings().items() if not text and not name.startswith(of_documents)]
    assert silent == []
