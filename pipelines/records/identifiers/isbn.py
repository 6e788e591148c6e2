"""ISBN (ISO 2108; ISBN Users' Manual): a book's number, as ISBN-13 without hyphens.

An ISBN-10 and the ISBN-13 made of it name one book, so both become that ISBN-13. 979-0 is printed music (ISMN); other numbers of 13
digits are bar codes of other things.
"""

from __future__ import annotations

import re

from pipelines.records.identifiers.check_digits import isbn_10_holds, isbn_13_holds, isbn_13_of
from pipelines.records.identifiers.cleaning import AFTER, BEFORE
from pipelines.records.identifiers.numbers_in_text import (
    LABEL_ISBN,
    ZEROS,
    NumberStandard,
    Validation,
    addresses,
    labels,
    read_numbers,
)
from pipelines.records.identifiers.verdicts import REPAIRED, VALID, FoundIdentifier, join_rules, rule_names

_13 = re.compile(r"(?:978[0-9]|979[1-9])[0-9]{9}")
_10 = re.compile(r"[0-9]{9}[0-9X]")
_HYPHENED = re.compile(r"[0-9](?:-?[0-9])*-[0-9X]")
_SHORT = re.compile(r"[1-9](?:[0-9]{6,8}|[0-9]{7}X)")
"""An ISBN-10 without its first zeros, of which at most three are missing (publisher 0-00)."""

_QUALIFIED = re.compile(r"([0-9][0-9-]{8,15}[0-9X]) \([A-Za-z .]*\)")
"""A number with all its zeros, and a remark of words after it."""

_SBN = re.compile(r"[0-9]{2,7}([ -])[0-9]{1,6}\1[0-9Xx]")
"""A Standard Book Number from before 1970: publisher, title, check digit. It never had the zero."""

_BETWEEN = re.compile(r"[ .-]+")
_DECIMAL = re.compile(r"([0-9]{7,13})\.0+")
_EXPONENT = re.compile(r"([0-9])\.?([0-9]*)[Ee]\+?([0-9]{1,2})")
_NUMBER = re.compile(r"[0-9]+X?")
_DOI = re.compile(r"10\.[0-9]{3}")
"""No ISBN is divided like this."""

_MADE_UP_10 = frozenset({*(10 * digit for digit in "0123456789"), "123456789X"})
_MADE_UP = _MADE_UP_10 | frozenset(map(isbn_13_of, _MADE_UP_10))
"""Placeholders from forms, and examples from textbooks; their check digits are right."""

_SBN_DIGITS, _ISBN_13_DIGITS = 9, 13


def read_clean(text: str) -> FoundIdentifier | None:
    """The value of a text that is one valid number, alone or with a remark in brackets after it; else None."""
    if _13.fullmatch(text):
        return FoundIdentifier("isbn", text, VALID, "") if isbn_13_holds(text) and text not in _MADE_UP else None
    if _10.fullmatch(text):
        number, rule = text, "isbn_10"
    elif _SHORT.fullmatch(text):
        number, rule = text.zfill(10), "leading_zeros+isbn_10"
    elif _HYPHENED.fullmatch(text):
        number, rule = text.replace("-", ""), "hyphens+isbn_10"
        if _13.fullmatch(number):
            holds = isbn_13_holds(number) and number not in _MADE_UP
            return FoundIdentifier("isbn", number, REPAIRED, "hyphens") if holds else None
        if not _10.fullmatch(number):
            return None
    else:
        return _with_remark(text)
    return (
        FoundIdentifier("isbn", isbn_13_of(number), REPAIRED, rule)
        if isbn_10_holds(number) and number not in _MADE_UP
        else None
    )


def _with_remark(text: str) -> FoundIdentifier | None:
    qualified = _QUALIFIED.fullmatch(text)
    found = read_clean(qualified[1]) if qualified else None
    if found is None or ZEROS in found.rule:
        return None
    return found._replace(verdict=REPAIRED, rule=join_rules(("qualifier", *rule_names(found.rule))))


def validate(run: str) -> Validation:
    """The ISBN of a run of digits and separators, or the reason why it is none."""
    rules: list[str] = []
    if exponent := _EXPONENT.fullmatch(run):
        run = exponent[1] + exponent[2]
        if len(run) != int(exponent[3]) + 1:
            return Validation(None, ("digits_lost",))
        rules.append("exponent")
    elif decimal := _DECIMAL.fullmatch(run):
        run = decimal[1]
        rules.append("decimal_zero")
    bare = _BETWEEN.sub("", run)
    number = bare.upper()
    rules += ["hyphens"] * (bare != run) + ["case"] * (number != bare)
    if not _NUMBER.fullmatch(number) or _DOI.match(run):
        return Validation(None, ("character",))
    if not number.strip("0"):
        return Validation(None, ("placeholder",))
    if len(number) == _ISBN_13_DIGITS:
        return _isbn_13(number, rules)
    completed, rule = _completed(run, number)
    return _isbn_10(completed, [*rules, *rule])


def _completed(run: str, number: str) -> tuple[str, tuple[str, ...]]:
    """A number with its missing zeros, if the check digit is then right, and the rule for it."""
    padded = number.zfill(10)
    if len(number) == _SBN_DIGITS and _SBN.fullmatch(run):
        return padded, ("sbn",)
    if _SHORT.fullmatch(number) and number == run.upper() and isbn_10_holds(padded):
        return padded, (ZEROS,)
    return number, ()


def _isbn_10(number: str, rules: list[str]) -> Validation:
    if not _10.fullmatch(number):
        return Validation(None, ("length",))
    if number in _MADE_UP:
        return Validation(None, ("placeholder",))
    return (
        Validation(isbn_13_of(number), (*rules, "isbn_10"))
        if isbn_10_holds(number)
        else Validation(None, ("check_digit",))
    )


def _isbn_13(number: str, rules: list[str]) -> Validation:
    if not _13.fullmatch(number):
        return Validation(None, ("music_number" if number.startswith("9790") else "prefix",))
    if number in _MADE_UP:
        return Validation(None, ("placeholder",))
    return Validation(number, tuple(rules)) if isbn_13_holds(number) else Validation(None, ("check_digit",))


_ADDRESS = addresses(rf"{LABEL_ISBN}|BookSources")
_WITH_WORDS = re.compile(r"(?:[0-9][ -]?){9}")
_NUMBERS = NumberStandard("isbn", labels(LABEL_ISBN), _ADDRESS, frozenset({10, 13}), validate, _WITH_WORDS)


def read(text: str) -> list[FoundIdentifier]:
    """Every ISBN in a text, valid or not."""
    return read_numbers(_NUMBERS, text)


UNAMBIGUOUS = rf"{BEFORE}(?:97[89](?:[- ]?[0-9]){{10}}|isbn(?:-1[03])?[: ]+(?:[0-9][- ]?){{9,12}}[0-9x]|{_ADDRESS.pattern}){AFTER}"
"""An ISBN in any text: 978 or 979 and ten digits, or a number after its name."""
