"""Advice for librarians: for every rule and every other finding, the problem and the remedy in plain words.

All these texts are here. `{name}` is the librarians' name of the identifier, `{source}` the place where the right one is printed, `{ids}`
the records that look alike, `{many}` their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pipelines.records.identifiers.verdicts import REPAIRED, rule_names

CACHED = 1000
"""Texts of a kind that are kept: a table of issues has the same ones in line after line."""


class Advice(NamedTuple):
    """A problem, and what to do about it."""

    problem: str
    suggestion: str


NAMES = {"doi": "DOI", "isbn": "ISBN", "issn": "ISSN", "arxiv_id": "arXiv identifier", "pmid": "PMID"}
"""Type → its common name."""

FIELDS = {
    "asset": "file",
    "authors": "authors",
    "publishable_type": "kind",
    "published_on": "date",
    "user_id": "user",
    "publication_id": "publication",
    "location_id": "location",
    "collection_ids": "collections",
    "parent_id": "belongs to",
}
"""Field of the service → the librarians' word for it, where that is another one."""

SOURCES = {
    "doi": "the publisher's page",
    "isbn": "the book: the back of its title page, or its cover",
    "issn": "the journal: its cover or its imprint",
    "arxiv_id": "the paper's page at arxiv.org",
    "pmid": "the record in PubMed",
}
"""Type → the place where the right identifier is printed."""

REPAIRED_VALUES = {
    "case": "It has other capital or small letters than the standard.",
    "hyphens": "The number has hyphens, blanks or points in the wrong places, or lacks them.",
    "sbn": "It is a Standard Book Number from before 1970, without the zero of an ISBN.",
    "isbn_10": "It is an ISBN of 10 digits.",
    "white_space": "There are blanks around the value, or unusual blanks in it.",
    "invisible": "There are invisible characters in it. Text that is copied from a web page or a PDF often has them.",
    "lookalikes": "A dash, digit or letter only looks like the right one.",
    "entities": "Signs are written as HTML codes, such as &lt; for <.",
    "latex": "There are LaTeX commands in it.",
    "enclosed": "There are brackets or quotation marks around it.",
    "label": "The name of the identifier is written before it.",
    "address": "It is written as a web address.",
    "percent_encoding": "Signs are written as percent codes, such as %2F for /.",
    "qualifier": "There are words beside it, such as (pbk.).",
    "punctuation": "There is punctuation around it.",
    "leading_zeros": "Its first zeros are missing: a spreadsheet removed them.",
    "surplus_zeros": "There are zeros before it.",
    "decimal_zero": "A spreadsheet wrote the number as a decimal (.0).",
    "exponent": "A spreadsheet wrote the number with an exponent, but all its digits are there.",
    "ean": "The field has the journal's bar code number instead of the ISSN.",
    "version": "It names one version of the paper (v2).",
    "subject_class": "There is a subject class beside it.",
    "archive": "The archive is written after the number.",
    "arxiv_doi": "The field has arXiv's own DOI of the paper instead of the arXiv identifier.",
    "split": "There are several identifiers in one field.",
    "repeated": "The same identifier is in the field more than once.",
    "other_type": "This identifier has another type than the field.",
}
"""Rule → what is unusual about a value that is nevertheless certain. Librarians need not do anything."""

REPAIRED_DATES = {"date_order": "Day, month and year are in another order or form, but only one reading is a date."}
"""Rule → what is unusual about a date that is nevertheless certain."""

DONE = "Nothing has to be done: it becomes {becomes}."

_COMPARE = "Compare with {source}, and correct the {name}."
_CLEAR = "Clear the field, or enter the right {name} if it has one."

TO_DO = {
    "check_digit": Advice("The check digit is wrong: at least one character of the {name} was mistyped.", _COMPARE),
    "length": Advice("The {name} has too few or too many digits.", _COMPARE),
    "prefix": Advice("No {name} begins like this.", f"It may be a number of another kind. {_COMPARE}"),
    "zeros_unproved": Advice("Zeros may be missing at the beginning, but that is not certain.", _COMPARE),
    "placeholder": Advice("This number is only a placeholder.", _CLEAR),
    "music_number": Advice(
        "This is an ISMN, the number of printed music, not an ISBN.",
        "Move it to a field for other numbers. If the music also has an ISBN, enter the ISBN.",
    ),
    "digits_lost": Advice(
        "A spreadsheet wrote the number with an exponent (9.78E+12), and its last digits are lost.",
        "Enter the {name} again from {source}. In a spreadsheet, set the format of such columns to Text before you enter numbers.",
    ),
    "ambiguous": Advice(
        "The text may be several numbers, and it is not clear where each one ends.",
        "Put a semicolon between the values. Compare with {source}.",
    ),
    "blank_inside": Advice(
        "There is a blank inside. The text after it may or may not belong to the {name}.",
        "Remove the blank, or the text after it. Compare with {source}.",
    ),
    "dash_inside": Advice(
        "There is a long dash inside. Only the publisher knows the right character.",
        "Copy the {name} from {source}.",
    ),
    "character": Advice("There is a character that cannot be part of an identifier of this type.", _COMPARE),
    "fragment": Advice(
        "The web address has a part after # that may or may not belong to the {name}.",
        "Remove that part if the {name} also works without it.",
    ),
    "suffix": Advice("The {name} ends after its first part.", "Copy all of it from {source}."),
    "date": Advice("The year and month at its beginning are impossible.", _COMPARE),
    "serial": Advice("The number within the month has too few or too many digits.", _COMPARE),
    "archive_unknown": Advice("arXiv has no archive of that name.", _COMPARE),
    "form": Advice("The value does not have the form of its type.", _COMPARE),
    "text": Advice(
        "The field has words, but no {name}.",
        "Move the words to the right field. If the publication has one, copy it from {source}.",
    ),
    "nothing": Advice("The field says that there is no {name}.", "Clear the field: an empty field means the same."),
    "blank": Advice("The field has only blanks.", "Clear the field."),
    "too_long": Advice(
        "The text is far longer than any identifier.", "Move the text to the right field, and enter only the {name}."
    ),
    "unknown_type": Advice(
        "Bookferry has no rule for identifiers of this type, so it was not checked.",
        "You need not correct it. The person who runs Bookferry can add this type to bookferry.toml.",
    ),
    "type_missing": Advice("The identifier has no type.", "Choose its type: DOI, ISBN, ISSN or another."),
}
"""Rule → advice on a value that is not an identifier."""

FINDINGS = {
    "file": Advice(
        "The content of this file could not be fetched.",
        "Open the file in the library. If it opens, the next backup will fetch it. If not, upload it again, or remove it.",
    ),
    "shared": Advice(
        "{many} records have the same {name}.",
        "Compare {ids}. If they describe the same publication, keep one of them. If not, correct the {name}.",
    ),
    "same_title": Advice(
        "{many} records have the same title and year.",
        "Compare {ids}. If they describe the same publication, keep one of them.",
    ),
    "no_title": Advice("The record has no title.", "Enter the title."),
    "no_date": Advice(
        "This is not a date.",
        "Write it as year, month and day: 1984-06-08. Version 3 takes no other form, so a migration leaves it out.",
    ),
}
"""Finding that is no rule → advice."""

LABELS = {
    "check_digit": "wrong check digit",
    "length": "wrong length",
    "prefix": "unknown beginning",
    "zeros_unproved": "first zeros uncertain",
    "placeholder": "placeholder",
    "music_number": "number of printed music",
    "digits_lost": "last digits lost",
    "ambiguous": "values run together",
    "blank_inside": "blank inside",
    "dash_inside": "long dash inside",
    "character": "wrong character",
    "fragment": "part after #",
    "suffix": "cut off",
    "date": "impossible month",
    "serial": "wrong number in the month",
    "archive_unknown": "unknown archive",
    "form": "wrong form",
    "text": "words in the field",
    "nothing": "a word for nothing",
    "blank": "only blanks",
    "too_long": "far too long",
    "unknown_type": "unknown type",
    "type_missing": "no type",
    "file": "file missing",
    "shared": "on several records",
    "same_title": "same title and year",
    "no_title": "no title",
    "no_date": "date not readable",
}
"""Rule or finding → its name in a list, which follows the name of the identifier if there is one."""

OTHER = "other"
"""Code of a rule from a later version of Bookferry."""

CODES = (*LABELS, REPAIRED, OTHER)
"""Every code of a line in the table of issues of a report, by which people filter: docs/reports.md. None is ever renamed."""

_UNEXPLAINED = Advice("This is not a valid {name}.", _COMPARE)
"""For a rule from a later version of Bookferry."""


def incomplete_dates(partial: int, others: int) -> str:
    """Part of a sentence on dates that are no day, with which report and plan say the same."""
    parts = [
        (partial, "only a year or a month, and version 3 takes only complete dates"),
        (others, "no date"),
    ]
    return "; ".join(f"{count:,} {'is' if count == 1 else 'are'} {what}" for count, what in parts if count)


def name_of(kind: str) -> str:
    """The common name of an identifier of a type."""
    return NAMES.get(kind, kind or "identifier")


@lru_cache(CACHED)
def field_name(field: str) -> str:
    """The librarians' word for a field of the service, or the field's own name."""
    name, blank, note = field.partition(" ")
    return (FIELDS.get(name) or NAMES.get(name) or name) + blank + note


@lru_cache(CACHED)
def code_of(rule: str) -> str:
    """The code of a rule or finding; of several rules, that of the one that the advice is about."""
    last = next(reversed(rule_names(rule)), "")
    return last if last in CODES else OTHER


def label_of(rule: str, kind: str) -> str:
    """The name of a rule or finding in a list, after the name of the identifier: `ISBN: wrong check digit`."""
    label = LABELS.get(rule, rule.replace("_", " "))
    return f"{name_of(kind)}: {label}" if kind else label


@lru_cache(CACHED)
def advice_of(rule: str, kind: str) -> Advice:
    """The advice on a value that is not an identifier of its type."""
    found = TO_DO.get(next(reversed(rule_names(rule)), ""), _UNEXPLAINED)
    words = {"name": name_of(kind), "source": SOURCES.get(kind, "the publication")}
    return Advice(found.problem.format(**words), found.suggestion.format(**words))


def advice_on_finding(kind: str, **words: object) -> Advice:
    """The advice on a finding that is no rule."""
    found = FINDINGS[kind]
    return Advice(found.problem.format(**words), found.suggestion.format(**words))


def general_advice(rule: str, kind: str) -> Advice:
    """The advice on many findings of the same kind."""
    if rule in FINDINGS:
        return advice_on_finding(rule, name=name_of(kind), many="Several", ids="them")
    return advice_of(rule, kind)


def advice_on_repair(rules: Sequence[str], becomes: str) -> Advice:
    """The text about a repaired field: what was unusual, and the new value `becomes`."""
    known = REPAIRED_VALUES | REPAIRED_DATES
    problems = [known[rule] for rule in rules if rule in known]
    return Advice(" ".join(problems), DONE.format(becomes=becomes))


def list_identifiers(values: Sequence[tuple[str, str]], most: int = 5) -> str:
    """The first identifiers of a list, as part of a sentence: the ISBN 9780306406157 and the ISSN 0378-5955."""
    return words_and([f"the {name_of(kind)} {value}" for kind, value in values[:most]], len(values))


def words_and(words: list[str], of: int) -> str:
    """`1, 2 and 3`; `1, 2, 3 and 7 more` where these are the first of more."""
    parts = words if of <= len(words) else [*words, f"{of - len(words):,} more"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
