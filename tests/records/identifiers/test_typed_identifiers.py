"""Whole records of both versions: what v3 is sent, and v2's fields back (I7)."""

from __future__ import annotations

from pipelines.records.identifiers.typed_identifiers import identify
from pipelines.records.identifiers.verdicts import VERDICTS
from tests.records.identifiers.conversion import entries_of, to_v2, to_v3

RECORD = {
    "title": "A record",
    "doi": "https://doi.org/10.1000/ABC",
    "isbn": "0306406152 (pbk.); 9780306406157; 9.78e+12; 1521-4095",
    "issn": None,
    "arxiv_id": "",
    "pmid": "18243976",
}


def test_v3_is_sent_good_values_once_and_others_only_if_wanted() -> None:
    found = identify(RECORD)
    good = [
        {"type": "doi", "value": "10.1000/abc"},
        {"type": "isbn", "value": "9780306406157"},
        {"type": "issn", "value": "1521-4095"},
        {"type": "pmid", "value": "18243976"},
    ]
    assert entries_of(found) == good
    assert entries_of(found, frozenset(VERDICTS)) == [*good[:2], {"type": "isbn", "value": "9.78e+12"}, *good[2:]]
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


def test_residue_is_only_what_the_list_does_not_tell() -> None:
    entries, residue = to_v3(RECORD)
    assert residue == {"doi": RECORD["doi"], "isbn": RECORD["isbn"], "arxiv_id": ""}
    assert to_v2(entries, residue) == {field: value for field, value in RECORD.items() if field != "title"}


def test_what_somebody_changed_in_v3_since_is_not_undone() -> None:
    """The residue of a field counts only while the list still holds all that was made of the field."""
    entries, residue = to_v3(RECORD)
    changed = [entry for entry in entries if entry["type"] != "isbn"] + [{"type": "isbn", "value": "9783161484100"}]
    back = to_v2(changed, residue)
    assert (back["isbn"], back["issn"], back["doi"]) == ("9783161484100", "1521-4095", RECORD["doi"])
    added = to_v2([*entries, {"type": "pmid", "value": "24038744"}], residue)
    assert added["pmid"] == "18243976; 24038744"


def test_text_far_too_long_is_not_looked_into() -> None:
    """I13: a field of any length costs little."""
    text = "0306406152; " * 1000
    assert [(one.value, one.verdict, one.rule) for one in identify({"isbn": text})] == [
        (text, "unrecognised", "too_long")
    ]
