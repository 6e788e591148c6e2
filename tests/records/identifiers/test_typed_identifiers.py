"""The identifiers of whole records of both versions (I7)."""

from __future__ import annotations

from tests.records.identifiers.identified import entries_of, identify

RECORD = {
    "title": "A record",
    "doi": "https://doi.org/10.1000/ABC",
    "isbn": "0306406152 (pbk.); 9780306406157; 9.78e+12; 1521-4095",
    "issn": None,
    "arxiv_id": "",
    "pmid": "18243976",
}


def test_the_good_values_of_flat_fields_are_a_list_with_each_once() -> None:
    found = identify(RECORD)
    good = [
        {"type": "doi", "value": "10.1000/abc"},
        {"type": "isbn", "value": "9780306406157"},
        {"type": "issn", "value": "1521-4095"},
        {"type": "pmid", "value": "18243976"},
    ]
    assert entries_of(found) == good
    assert entries_of(identify({"doi": "10.1000/a", "isbn": "doi:10.1000/a"})) == [
        {"type": "doi", "value": "10.1000/a"}
    ]


def test_a_typed_list_is_read_like_the_fields() -> None:
    """An entry has type and value (service.md#identifiers). Any other entry is a row with its text unchanged."""
    entries = [{"type": "ISBN", "value": "0306406152"}, {"type": "urn", "value": "urn:x:y"}, {"value": 7}, "x", None]
    assert [tuple(one) for one in identify({"identifiers": entries})] == [
        ("isbn", "9780306406157", "0306406152", "identifiers", 0, "repaired", "isbn_10"),
        ("urn", "urn:x:y", "urn:x:y", "identifiers", 1, "unrecognised", "unknown_type"),
        ("", "7", "7", "identifiers", 2, "unrecognised", "type_missing"),
        ("", "x", "x", "identifiers", 3, "unrecognised", "type_missing"),
        ("", "", "", "identifiers", 4, "unrecognised", "type_missing"),
    ]


def test_text_far_too_long_is_not_looked_into() -> None:
    """I13: a field of any length costs little."""
    text = "0306406152; " * 1000
    assert [(one.value, one.verdict, one.rule) for one in identify({"isbn": text})] == [
        (text, "unrecognised", "too_long")
    ]
