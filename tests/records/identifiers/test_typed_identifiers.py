"""The identifiers of whole records of both versions (I7)."""

from __future__ import annotations

from tests.records.identifiers.identified import identify


def test_a_typed_list_is_read_like_the_fields() -> None:
    """An entry has type and value (service.md#identifiers). Any other entry is a row with its text unchanged."""
    entries = [{"type": "ISBN", "value": "0306406152"}, {"type": "urn", "value": "urn:x:y"}, {"value": 7}, "x", None]
    assert [tuple(identifier) for identifier in identify({"identifiers": entries})] == [
        ("isbn", "9780306406157", "0306406152", "identifiers", 0, "repaired", "isbn_10"),
        ("urn", "urn:x:y", "urn:x:y", "identifiers", 1, "unrecognised", "unknown_type"),
        ("", "7", "7", "identifiers", 2, "unrecognised", "type_missing"),
        ("", "x", "x", "identifiers", 3, "unrecognised", "type_missing"),
        ("", "", "", "identifiers", 4, "unrecognised", "type_missing"),
    ]


def test_text_far_too_long_is_not_looked_into() -> None:
    """I13: a field of any length costs little."""
    text = "0306406152; " * 1000
    assert [(identifier.value, identifier.verdict, identifier.rule) for identifier in identify({"isbn": text})] == [
        (text, "unrecognised", "too_long")
    ]
