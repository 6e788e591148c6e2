"""Prices beside a number, as catalogue cards have them (ISBD, area 8)."""

from __future__ import annotations

import pytest

from pipelines.records.identifiers.kinds import STANDARD_KINDS


@pytest.mark.parametrize(
    "text",
    [
        "0-19-852663-6 : CNY59.00",
        "0-19-852663-6 (Br.) : EUR 19,95",
        "0-19-852663-6 : 12,50 EUR",
        "0-19-852663-6 : Kč 120.00",
        "ISBN 0 19 852663 6 (pbk.) : £12.99",
        "0-19-852663-6 (inb.) : 249:-",
        "0-19-852663-6 (в обл.) : 20.50, 5000 экз.",
        "0-19-852663-6 : R$ 45,90",
        "0-19-852663-6 : 2500000 ریال",
        "0-19-852663-6 (gal.) : ۱۲۵۰۰۰۰ تومان",
        "0-19-852663-6 : Rp 1250000",
        "0-19-852663-6 : Rp 20493630",
        "0-19-852663-6 : 2049-3630 Ft",
        "0-19-852663-6 : 2049\u20133630 forint",
        "0-19-852663-6 (br.) : 2049-3630",
        "0-19-852663-6 (brož. : Kč 2049-3630)",
        "0-19-852663-6 : 19500-29504 Ft",
        "0-19-852663-6 : 19500-29504",
    ],
)
def test_a_price_is_no_second_identifier(text: str) -> None:
    """The check digit proves the number; the price goes, with its rule."""
    [isbn] = STANDARD_KINDS.read("isbn", text)
    assert (isbn.value, isbn.verdict) == ("9780198526636", "repaired")
    assert "qualifier" in isbn.rule


@pytest.mark.parametrize(
    "tail",
    [
        " (fűzött) : 2049-3630 Ft",
        " : EUR 2049-3630",
        " (inb.) : 249:-",
        " : 25.00 EUR, 30.00 CHF",
        " ; 24 cm",
        " : HK$ 128",
        " (в пер.) : 1250 руб. 00 коп.",
    ],
)
def test_words_and_prices_after_a_mistyped_number_are_no_second_identifier(tail: str) -> None:
    """Only its check digit is named."""
    [isbn] = STANDARD_KINDS.read("isbn", f"0-19-852663-7{tail}")
    assert (isbn.value, isbn.verdict, isbn.rule) == ("0-19-852663-7", "invalid", "check_digit")


@pytest.mark.parametrize("text", ["kart. : DM 24.80", "(cased) : $40.00", "2049-3630 Ft", "EUR 2049-3630"])
def test_a_price_alone_is_no_identifier(text: str) -> None:
    """It is named as words."""
    assert {one.verdict for one in STANDARD_KINDS.read("isbn", text)} == {"unrecognised"}


@pytest.mark.parametrize("tail", [" - broš.", " : oprawa twarda", " = 19,95 €", " geb."])
def test_an_x_in_a_group_of_its_own_belongs_to_the_number_before_words(tail: str) -> None:
    [isbn] = STANDARD_KINDS.read("isbn", f"0 8044 2957 X{tail}")
    assert (isbn.value, isbn.verdict) == ("9780804429573", "repaired")


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("isbn", "0378-5955 : 2049-3630 (online)"),
        ("isbn", "0378-5955 ; ISSN (Druck) : 2049-3630"),
        ("issn", "0378-5955 : 2049-3630"),
        ("issn", "ISSN: 0378-5955 Druck ; ISSN: 2049-3630 imp."),
    ],
)
def test_a_number_with_its_name_or_in_its_own_field_is_no_price(field: str, text: str) -> None:
    values = [one.value for one in STANDARD_KINDS.read(field, text) if one.verdict == "repaired"]
    assert values == ["0378-5955", "2049-3630"]


def test_a_range_of_prices_is_no_second_issn() -> None:
    [issn] = STANDARD_KINDS.read("issn", "0378-5955 : 2049-3630 Ft")
    assert (issn.value, issn.rule) == ("0378-5955", "qualifier")


@pytest.mark.parametrize(
    ("field", "number", "value"), [("issn", "0378-5955", "0378-5955"), ("isbn", "0-19-852663-6", "9780198526636")]
)
@pytest.mark.parametrize("form", ["{} (1908-1936)", "{} [1908 - 1936]", "({}) (1908-1936)"])
def test_years_in_brackets_are_no_second_identifier(field: str, number: str, value: str, form: str) -> None:
    """The check digit of an ISSN is right in every eleventh row of years."""
    [one] = STANDARD_KINDS.read(field, form.format(number))
    assert (one.value, one.verdict) == (value, "repaired")


def test_an_issn_that_looks_like_years_is_one_alone() -> None:
    assert [one.value for one in STANDARD_KINDS.read("issn", "(1756-1833)")] == ["1756-1833"]
    assert [one.value for one in STANDARD_KINDS.read("issn", "0959-8138, 1756-1833")] == ["0959-8138", "1756-1833"]
