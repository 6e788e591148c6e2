"""Prices beside a number, as catalogue cards have them (ISBD, area 8)."""

from __future__ import annotations

import pytest

from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.verdicts import GOOD

ISBN = "9780198526636"
CASES: list[tuple[str, str, tuple[str, ...]]] = [
    *(
        ("isbn", f"{text}", (ISBN, "repaired", "qualifier"))
        for text in (
            "0-19-852663-6 : CNY59.00",
            "0-19-852663-6 (Br.) : EUR 19,95",
            "0-19-852663-6 : Kč 120.00",
            "ISBN 0 19 852663 6 (pbk.) : £12.99",
            "0-19-852663-6 (в обл.) : 20.50, 5000 экз.",
            "0-19-852663-6 : 2500000 ریال",
            "0-19-852663-6 (gal.) : ۱۲۵۰۰۰۰ تومان",
            "0-19-852663-6 : Rp 1250000",
            "0-19-852663-6 : 2049-3630 Ft",
            "0-19-852663-6 (br.) : 2049-3630",
            "0-19-852663-6 (brož. : Kč 2049-3630)",
            "0-19-852663-6 : 19500-29504 Ft",
        )
    ),
    *(
        ("isbn", f"0-19-852663-7{tail}", ("0-19-852663-7", "invalid", "check_digit"))
        for tail in (
            " (fűzött) : 2049-3630 Ft",
            " : EUR 2049-3630",
            " : 25.00 EUR, 30.00 CHF",
            " ; 24 cm",
            " (в пер.) : 1250 руб. 00 коп.",
        )
    ),
    *(
        ("isbn", f"0 8044 2957 X{tail}", ("9780804429573", "repaired", ""))
        for tail in (" - broš.", " : oprawa twarda", " = 19,95 €", " geb.")
    ),
    ("issn", "0378-5955 : 2049-3630 Ft", ("0378-5955", "repaired", "qualifier")),
    *(
        (field, form.format(number), (value, "repaired", ""))
        for field, number, value in (("issn", "0378-5955", "0378-5955"), ("isbn", "0-19-852663-6", ISBN))
        for form in ("{} (1908-1936)", "{} [1908 - 1936]", "({}) (1908-1936)")
    ),
    ("issn", "(1756-1833)", ("1756-1833", "repaired", "")),
]
"""The field, the text, and its one identifier, verdict and rule: the check digit proves the number, and prices, words and years go."""


@pytest.mark.parametrize(("field", "text", "expected"), CASES)
def test_what_stands_beside_a_number_is_no_second_identifier(field: str, text: str, expected: tuple[str, ...]) -> None:
    """The check digit of an ISSN is right in every eleventh row of years or prices."""
    [one] = STANDARD_KINDS.read(field, text)
    assert (one.value, one.verdict) == expected[:2]
    assert expected[2] in one.rule


@pytest.mark.parametrize("text", ["kart. : DM 24.80", "(cased) : $40.00", "2049-3630 Ft", "EUR 2049-3630"])
def test_a_price_alone_is_no_identifier(text: str) -> None:
    """It is named as words."""
    assert {one.verdict for one in STANDARD_KINDS.read("isbn", text)} == {"unrecognised"}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("isbn", "0378-5955 : 2049-3630 (online)"),
        ("isbn", "0378-5955 ; ISSN (Druck) : 2049-3630"),
        ("issn", "0378-5955 : 2049-3630"),
        ("issn", "ISSN: 0378-5955 Druck ; ISSN: 2049-3630 imp."),
        ("issn", "0378-5955, 2049-3630"),
    ],
)
def test_a_number_with_its_name_or_in_its_own_field_is_no_price(field: str, text: str) -> None:
    values = [one.value for one in STANDARD_KINDS.read(field, text) if one.verdict in GOOD]
    assert values == ["0378-5955", "2049-3630"]
