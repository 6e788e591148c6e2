"""ISSN (ISO 3297): the number of a journal or another serial, as NNNN-NNNC."""

from __future__ import annotations

import re

from pipelines.records.identifiers.check_digits import isbn_13_holds, issn_holds, issn_of
from pipelines.records.identifiers.cleaning import AFTER, BEFORE
from pipelines.records.identifiers.numbers_in_text import (
    LABEL_ISSN,
    ZEROS,
    NumberStandard,
    Validation,
    addresses,
    labels,
    read_numbers,
)
from pipelines.records.identifiers.verdicts import REPAIRED, VALID, FoundIdentifier

_ISSN = re.compile(r"[0-9]{4}-[0-9]{3}[0-9X]")
_8 = re.compile(r"[0-9]{7}[0-9X]")
_SHORT = re.compile(r"[1-9][0-9]{5,6}")
"""An ISSN without its hyphen and its first one or two zeros."""

_EAN = re.compile(r"977[0-9]{10}")
_BETWEEN = re.compile(r"[ .-]+")
_DECIMAL = re.compile(r"([0-9]{6,8})\.0+")
_NUMBER = re.compile(r"[0-9]+X?")

_MADE_UP = frozenset({"00000000", "12345679"})
"""Placeholders from forms, and examples from textbooks; their check digits are right."""


def read_clean(text: str) -> FoundIdentifier | None:
    """The value of a text that is an ISSN, with or without its hyphen; else None."""
    if _ISSN.fullmatch(text):
        number, value, rule = text[:4] + text[5:], text, ""
    elif _8.fullmatch(text):
        number, value, rule = text, f"{text[:4]}-{text[4:]}", "hyphens"
    else:
        return None
    if issn_holds(number) and number not in _MADE_UP:
        return FoundIdentifier("issn", value, REPAIRED if rule else VALID, rule)
    return None


def validate(run: str) -> Validation:
    """The ISSN of a run of digits and separators, or the reason why it is none."""
    rules: list[str] = []
    if decimal := _DECIMAL.fullmatch(run):
        run = decimal[1]
        rules.append("decimal_zero")
    joined = _BETWEEN.sub("", run)
    number = joined.upper()
    rules += ["case"] * (number != joined)
    if not _NUMBER.fullmatch(number):
        return Validation(None, ("character",))
    if not number.strip("0"):
        return Validation(None, ("placeholder",))
    if _EAN.fullmatch(number):
        return (
            Validation(issn_of(number[3:10]), (*rules, "ean"))
            if isbn_13_holds(number)
            else Validation(None, ("check_digit",))
        )
    if _SHORT.fullmatch(number) and number == run.upper() and issn_holds(number.zfill(8)):
        rules.append(ZEROS)
        number = number.zfill(8)
    if not _8.fullmatch(number):
        return Validation(None, ("length",))
    if number in _MADE_UP:
        return Validation(None, ("placeholder",))
    value = f"{number[:4]}-{number[4:]}"
    rules += ["hyphens"] * (run.upper() != value)
    return Validation(value, tuple(rules)) if issn_holds(number) else Validation(None, ("check_digit",))


_YEARS = "(?:1[6-9]|20)[0-9]{2}-(?:1[6-9]|20)[0-9]{2}"
_ADDRESS = addresses(LABEL_ISSN)
UNAMBIGUOUS = rf"{BEFORE}(?:(?!{_YEARS})[0-9]{{4}}-[0-9]{{3}}[0-9x]|[ep]?-?issn(?:-l)?[: ]+[0-9]{{7}}[0-9x]|{_ADDRESS.pattern}){AFTER}"
"""An ISSN in any text: in its standard form, or after its name. A number that may be two years is none."""

_WITH_WORDS = re.compile(UNAMBIGUOUS, re.IGNORECASE)
_NUMBERS = NumberStandard("issn", labels(LABEL_ISSN), _ADDRESS, frozenset({8}), validate, _WITH_WORDS)


def read(text: str) -> list[FoundIdentifier]:
    """Every ISSN in a text, valid or not."""
    return read_numbers(_NUMBERS, text)
