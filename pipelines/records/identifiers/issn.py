"""ISSN (ISO 3297): the number of a journal or another serial, as NNNN-NNNC."""

from __future__ import annotations

import re

from stdnum import ean, issn

from pipelines.records.identifiers.cleaning import AFTER, BEFORE
from pipelines.records.identifiers.numbers_in_text import (
    LABEL_ISSN,
    NumberStandard,
    Validation,
    addresses,
    labels,
    read_numbers,
)
from pipelines.records.identifiers.rules import Rule
from pipelines.records.identifiers.verdicts import FoundIdentifier

_CANONICAL = re.compile(r"[0-9]{4}-[0-9]{3}[0-9X]")
_8 = re.compile(r"[0-9]{7}[0-9X]")
_SHORT = re.compile(r"[1-9][0-9]{5,6}")
"""An ISSN without its hyphen and its first one or two zeros."""

_EAN = re.compile(r"977[0-9]{10}")
_BETWEEN = re.compile(r"[ .-]+")
_DECIMAL = re.compile(r"([0-9]{6,8})\.0+")
_NUMBER = re.compile(r"[0-9]+X?")

_MADE_UP = frozenset({"00000000", "12345679"})
"""Placeholders from forms, and examples from textbooks; their check digits are right."""


def validate(run: str) -> Validation:
    """The ISSN of a run of digits and separators, or the reason why it is none."""
    rules: list[Rule] = []
    if decimal := _DECIMAL.fullmatch(run):
        run = decimal[1]
        rules.append(Rule.DECIMAL_ZERO)
    joined = _BETWEEN.sub("", run)
    number = joined.upper()
    rules += [Rule.CASE] * (number != joined)
    if not _NUMBER.fullmatch(number):
        return Validation(None, (Rule.CHARACTER,))
    if not number.strip("0"):
        return Validation(None, (Rule.PLACEHOLDER,))
    if _EAN.fullmatch(number):
        return _from_bar_code(number, rules)
    if _SHORT.fullmatch(number) and number == run.upper() and _holds(number.zfill(8)):
        rules.append(Rule.LEADING_ZEROS)
        number = number.zfill(8)
    if not _8.fullmatch(number):
        return Validation(None, (Rule.LENGTH,))
    value = f"{number[:4]}-{number[4:]}"
    if not is_canonical(value):
        return Validation(None, (Rule.PLACEHOLDER if number in _MADE_UP else Rule.CHECK_DIGIT,))
    rules += [Rule.HYPHENS] * (run.upper() != value)
    return Validation(value, tuple(rules))


def is_canonical(text: str) -> bool:
    """Whether a text is a valid ISSN in its standard form and nothing else."""
    if not _CANONICAL.fullmatch(text):
        return False
    number = text.replace("-", "")
    return _holds(number) and number not in _MADE_UP


def _holds(number: str) -> bool:
    """Whether the check digit of eight characters is right."""
    return issn.calc_check_digit(number[:7]) == number[7]


def _from_bar_code(number: str, rules: list[Rule]) -> Validation:
    if not ean.is_valid(number):
        return Validation(None, (Rule.CHECK_DIGIT,))
    seven = number[3:10]
    return Validation(issn.format(seven + issn.calc_check_digit(seven)), (*rules, Rule.EAN))


_YEARS = "(?:1[6-9]|20)[0-9]{2}-(?:1[6-9]|20)[0-9]{2}"
_ADDRESS = addresses(LABEL_ISSN)
UNAMBIGUOUS = rf"{BEFORE}(?:(?!{_YEARS})[0-9]{{4}}-[0-9]{{3}}[0-9x]|[ep]?-?issn(?:-l)?[: ]+[0-9]{{7}}[0-9x]|{_ADDRESS.pattern}){AFTER}"
"""An ISSN in any text: in its standard form, or after its name. A number that may be two years is none."""

_WITH_WORDS = re.compile(UNAMBIGUOUS, re.IGNORECASE)
_NUMBERS = NumberStandard("issn", labels(LABEL_ISSN), _ADDRESS, frozenset({8}), validate, _WITH_WORDS)


def read(text: str) -> list[FoundIdentifier]:
    """Every ISSN in a text, valid or not."""
    return read_numbers(_NUMBERS, text)
