"""The advice for librarians: every rule has its text, and the text names the identifier."""

from __future__ import annotations

from pipelines.records import advice


def test_what_a_field_becomes() -> None:
    """A field that holds two numbers, one of them twice as an ISBN-10 and an ISBN-13, which is one identifier."""
    problem, suggestion = advice.advice_on_repair(
        ["split", "repeated"], advice.list_identifiers([("isbn", "9780306406157"), ("issn", "0378-5955")])
    )
    assert problem.startswith("There are several identifiers in one field.")
    assert suggestion == "Nothing has to be done: it becomes the ISBN 9780306406157 and the ISSN 0378-5955."
    assert (
        advice.list_identifiers([("doi", str(number)) for number in range(9)])
        == "the DOI 0, the DOI 1, the DOI 2, the DOI 3, the DOI 4 and 4 more"
    )
