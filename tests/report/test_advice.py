"""The advice for librarians: every rule has its text, and the text names the identifier."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.records import advice
from pipelines.records.identifiers.rules import Rule, Sort
from pipelines.report.issues import LONGEST
from pipelines.report.tables import COLUMNS


@pytest.mark.parametrize("kind", [*advice.NAMES, "pmcid", ""])
def test_the_words_are_sentences(kind: str) -> None:
    """Also for a rule of a later version; nothing in them is left to be filled in."""
    for rule in (*(rule for rule in Rule if rule.label), "of_a_later_version", ""):
        for text in advice.advice_of(rule, kind):
            assert text.endswith(".")
            assert "{" not in text


def test_what_asks_for_work_has_a_label_and_advice() -> None:
    """And what Bookferry repaired has neither; its sentence stands as it is."""
    for rule in Rule:
        asks = rule.sort in (Sort.INVALID, Sort.UNRECOGNISED, Sort.RECORD)
        assert bool(rule.label) == bool(rule.to_do) == asks
        assert asks or (rule.sentence.endswith(".") and "{" not in rule.sentence)


def test_what_a_field_becomes() -> None:
    """A field that holds two numbers, one of them twice as an ISBN-10 and an ISBN-13, which is one identifier."""
    problem, suggestion = advice.advice_on_repair(
        ["split", "repeated"], advice.list_identifiers([("isbn", "9780306406157"), ("issn", "0378-5955")])
    )
    assert problem.startswith("There are several identifiers in one field.")
    assert suggestion == "Nothing has to be done: it becomes the ISBN 9780306406157 and the ISSN 0378-5955."
    assert (
        advice.list_identifiers([("doi", str(number)) for number in range(9)], 2) == "the DOI 0, the DOI 1 and 7 more"
    )


def test_the_document_describes_the_table() -> None:
    """docs/reports.md names the columns of issues.tsv, in their order, and how long a value is."""
    text = (Path(__file__).parents[2] / "docs" / "reports.md").read_text("utf-8")
    text = text.partition("### The link")[0]
    assert tuple(re.findall(rf"^\| ({'|'.join(COLUMNS)}) \|", text, re.MULTILINE)) == COLUMNS
    assert f"at most {LONGEST} characters" in text
