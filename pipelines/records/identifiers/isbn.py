"""ISBN (ISO 2108; ISBN Users' Manual): a book's number, as ISBN-13 without hyphens.

An ISBN-10 and the ISBN-13 made of it name one book, so both become that ISBN-13. 979-0 is printed music (ISMN); other numbers of 13
digits are bar codes of other things.
"""

from __future__ import annotations

import re

from stdnum import ean, isbn

from pipelines.records.identifiers.cleaning import AFTER, BEFORE
from pipelines.records.identifiers.numbers_in_text import (
    LABEL_ISBN,
    NumberStandard,
    Validation,
    addresses,
    labels,
    read_numbers,
)
from pipelines.records.identifiers.rules import Rule
from pipelines.records.identifiers.verdicts import FoundIdentifier

_13 = re.compile(r"(?:978[0-9]|979[1-9])[0-9]{9}")
_10 = re.compile(r"[0-9]{9}[0-9X]")
_SHORT = re.compile(r"[1-9](?:[0-9]{6,8}|[0-9]{7}X)")
"""An ISBN-10 without its first zeros, of which at most three are missing (publisher 0-00)."""

_SBN = re.compile(r"[0-9]{2,7}([ -])[0-9]{1,6}\1[0-9Xx]")
"""A Standard Book Number from before 1970: publisher, title, check digit. It never had the zero."""

_BETWEEN = re.compile(r"[ .-]+")
_DECIMAL = re.compile(r"([0-9]{7,13})\.0+")
_EXPONENT = re.compile(r"([0-9])\.?([0-9]*)[Ee]\+?([0-9]{1,2})")
_NUMBER = re.compile(r"[0-9]+X?")
_DOI = re.compile(r"10\.[0-9]{3}")
"""No ISBN is divided like this."""

_MADE_UP_10 = frozenset({*(10 * digit for digit in "0123456789"), "123456789X"})
_MADE_UP = _MADE_UP_10 | frozenset(map(isbn.to_isbn13, _MADE_UP_10))
"""Placeholders from forms, and examples from textbooks; their check digits are right."""

_SBN_DIGITS, _ISBN_13_DIGITS = 9, 13


def validate(run: str) -> Validation:
    """The ISBN of a run of digits and separators, or the reason why it is none."""
    rules: list[Rule] = []
    if exponent := _EXPONENT.fullmatch(run):
        run = exponent[1] + exponent[2]
        if len(run) != int(exponent[3]) + 1:
            return Validation(None, (Rule.DIGITS_LOST,))
        rules.append(Rule.EXPONENT)
    elif decimal := _DECIMAL.fullmatch(run):
        run = decimal[1]
        rules.append(Rule.DECIMAL_ZERO)
    bare = _BETWEEN.sub("", run)
    number = bare.upper()
    rules += [Rule.HYPHENS] * (bare != run) + [Rule.CASE] * (number != bare)
    if not _NUMBER.fullmatch(number) or _DOI.match(run):
        return Validation(None, (Rule.CHARACTER,))
    if not number.strip("0"):
        return Validation(None, (Rule.PLACEHOLDER,))
    if len(number) == _ISBN_13_DIGITS:
        return _isbn_13(number, rules)
    completed, rule = _completed(run, number)
    return _isbn_10(completed, [*rules, *rule])


def _completed(run: str, number: str) -> tuple[str, tuple[Rule, ...]]:
    """A number with its missing zeros, if the check digit is then right, and the rule for it."""
    padded = number.zfill(10)
    if len(number) == _SBN_DIGITS and _SBN.fullmatch(run):
        return padded, (Rule.SBN,)
    if _SHORT.fullmatch(number) and number == run.upper() and isbn.is_valid(padded):
        return padded, (Rule.LEADING_ZEROS,)
    return number, ()


def _isbn_10(number: str, rules: list[Rule]) -> Validation:
    if not _10.fullmatch(number):
        return Validation(None, (Rule.LENGTH,))
    if number in _MADE_UP:
        return Validation(None, (Rule.PLACEHOLDER,))
    if not isbn.is_valid(number):
        return Validation(None, (Rule.CHECK_DIGIT,))
    digits = f"978{number[:-1]}"
    return Validation(digits + ean.calc_check_digit(digits), (*rules, Rule.ISBN_10))


def _isbn_13(number: str, rules: list[Rule]) -> Validation:
    if is_canonical(number):
        return Validation(number, tuple(rules))
    if not _13.fullmatch(number):
        return Validation(None, (Rule.MUSIC_NUMBER if number.startswith("9790") else Rule.PREFIX,))
    return Validation(None, (Rule.PLACEHOLDER if number in _MADE_UP else Rule.CHECK_DIGIT,))


def is_canonical(text: str) -> bool:
    """Whether a text is a valid ISBN-13 without hyphens and nothing else."""
    return _13.fullmatch(text) is not None and ean.calc_check_digit(text[:12]) == text[12] and text not in _MADE_UP


_ADDRESS = addresses(rf"{LABEL_ISBN}|BookSources")
_WITH_WORDS = re.compile(r"(?:[0-9][ -]?){9}")
_NUMBERS = NumberStandard("isbn", labels(LABEL_ISBN), _ADDRESS, frozenset({10, 13}), validate, _WITH_WORDS)


def read(text: str) -> list[FoundIdentifier]:
    """Every ISBN in a text, valid or not."""
    return read_numbers(_NUMBERS, text)


UNAMBIGUOUS = rf"{BEFORE}(?:97[89](?:[- ]?[0-9]){{10}}|isbn(?:-1[03])?[: ]+(?:[0-9][- ]?){{9,12}}[0-9x]|{_ADDRESS.pattern}){AFTER}"
"""An ISBN in any text: 978 or 979 and ten digits, or a number after its name."""
