"""The advice for librarians: every rule has its text, and the text names the identifier."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from pipelines.records import advice
from pipelines.records.identifiers.rules import FAULTS, REPAIRS, SPELLING, UNRECOGNISED_REASONS
from pipelines.report.issues import LONGEST
from pipelines.report.tables import COLUMNS


def test_every_rule_has_its_words() -> None:
    """One table for what was repaired, one for what is to be done; nothing in them that is no rule."""
    assert advice.REPAIRED_VALUES.keys() == SPELLING.keys() | REPAIRS.keys()
    assert advice.TO_DO.keys() == FAULTS.keys() | UNRECOGNISED_REASONS.keys()
    assert advice.LABELS.keys() == advice.TO_DO.keys() | advice.FINDINGS.keys()


@pytest.mark.parametrize("kind", [*advice.NAMES, "pmcid", ""])
def test_the_words_are_sentences(kind: str) -> None:
    """Also for a rule of a later version; nothing in them is left to be filled in."""
    for rule in (*advice.LABELS, "of_a_later_version", ""):
        for text in advice.general_advice(rule, kind):
            assert text.endswith(".")
            assert not any(name for _text, name, _form, _conversion in string.Formatter().parse(text))


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
