"""What to tell a librarian: for every rule and every other finding, what is wrong in the words of the trade, and what to do about it.

The one place for these texts. `{name}` is what the trade calls the identifier, `{source}` where the right one stands, `{ids}` the records
that are alike, `{many}` how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipelines.records.identifiers.verdicts import rule_names


class Advice(NamedTuple):
    """What is wrong, and what to do."""

    problem: str
    suggestion: str


NAMES = {"doi": "DOI", "isbn": "ISBN", "issn": "ISSN", "arxiv_id": "arXiv identifier", "pmid": "PMID"}
"""Type → what people call it."""

SOURCES = {
    "doi": "the publisher's page",
    "isbn": "the book: the back of its title page, or its cover",
    "issn": "the journal: its cover or its imprint",
    "arxiv_id": "the paper's page at arxiv.org",
    "pmid": "the record in PubMed",
}
"""Type → where the right identifier stands."""

MENDED = {
    "case": "It is written in capitals or small letters other than the standard's.",
    "hyphens": "Hyphens, blanks or points stand in the number, or are missing.",
    "sbn": "It is a Standard Book Number of before 1970, without the zero of an ISBN.",
    "isbn_10": "It is an ISBN of 10 digits.",
    "white_space": "There are blanks around the value, or unusual ones in it.",
    "invisible": "There are invisible characters in it, as they come along when text is copied from a web page or a PDF.",
    "lookalikes": "A dash, digit or letter only looks like the right one.",
    "entities": "Signs are written as HTML codes, such as &lt; for <.",
    "latex": "There are LaTeX commands in it.",
    "enclosed": "There are brackets or quotation marks around it.",
    "label": "The name of the identifier stands before it.",
    "address": "It is written as a web address.",
    "percent_encoding": "Signs are written as percent codes, such as %2F for /.",
    "qualifier": "Words such as (pbk.) stand beside it.",
    "punctuation": "Punctuation stands around it.",
    "leading_zeros": "Its first zeros are missing: a spreadsheet takes them away.",
    "surplus_zeros": "Zeros stand before it.",
    "decimal_zero": "A spreadsheet wrote the number as a decimal (.0).",
    "exponent": "A spreadsheet wrote the number with an exponent, but all of its digits are there.",
    "ean": "The bar code number of the journal stands in place of the ISSN.",
    "version": "It names one version of the paper (v2).",
    "subject_class": "A subject class stands beside it.",
    "archive": "The archive stands behind the number.",
    "arxiv_doi": "The DOI that arXiv gives each paper stands in place of the arXiv identifier.",
    "split": "Several identifiers stand in one field.",
    "repeated": "The same identifier stands in the field more than once.",
    "other_type": "This is an identifier of another type than the field's.",
}
"""Rule → what is unusual about a value that is certain all the same. Nothing has to be done about these."""

DONE = "Nothing has to be done: it becomes {becomes}."

_COMPARE = "Compare with {source}, and correct the {name}."
_CLEAR = "Clear the field, or enter the right {name} if it has one."

TO_DO = {
    "check_digit": Advice("The check digit is wrong: at least one character of the {name} was mistyped.", _COMPARE),
    "length": Advice("The {name} has too few or too many digits.", _COMPARE),
    "prefix": Advice("No {name} begins like this.", f"Perhaps it is a number of another kind. {_COMPARE}"),
    "zeros_unproved": Advice("Zeros may be missing at the beginning, but that is not certain.", _COMPARE),
    "placeholder": Advice("A number that stands for none.", _CLEAR),
    "music_number": Advice(
        "This is an ISMN, the number of printed music, and no ISBN.",
        "Move it to a field for other numbers; if the music has an ISBN too, enter that.",
    ),
    "digits_lost": Advice(
        "A spreadsheet wrote the number with an exponent (9.78E+12), and its last digits are lost.",
        "Enter the {name} anew from {source}. In spreadsheets, give such columns the format Text before anything is put in.",
    ),
    "ambiguous": Advice(
        "The text can be taken apart in more than one way.",
        "Put a semicolon between the values. Compare with {source}.",
    ),
    "blank_inside": Advice(
        "There is a blank inside; what stands behind it may or may not belong to the {name}.",
        "Remove the blank, or what stands behind it. Compare with {source}.",
    ),
    "dash_inside": Advice(
        "There is a long dash where only the publisher knows which character belongs.",
        "Copy the {name} from {source}.",
    ),
    "character": Advice("There is a character that cannot be part of an identifier of this type.", _COMPARE),
    "fragment": Advice(
        "The web address has a part behind # that may or may not belong to the {name}.",
        "Remove that part if the {name} leads to the publication without it.",
    ),
    "suffix": Advice("There is nothing behind the first part of the {name}.", "Copy all of it from {source}."),
    "date": Advice("The year and month at its beginning cannot be.", _COMPARE),
    "serial": Advice("The number within the month has too few or too many digits.", _COMPARE),
    "archive_unknown": Advice("arXiv has no archive of that name.", _COMPARE),
    "form": Advice("The value does not have the form of its type.", _COMPARE),
    "text": Advice(
        "There are words in the field, and no {name}.",
        "Move the words to where they belong. If there is an identifier, copy it from {source}.",
    ),
    "nothing": Advice("The field says that there is no {name}.", "Clear the field: an empty one says the same."),
    "blank": Advice("There are only blanks in the field.", "Clear the field."),
    "too_long": Advice(
        "The text is far longer than any identifier.", "Move it to where it belongs, and enter the {name} alone."
    ),
    "unknown_type": Advice(
        "Bookferry has no rule for identifiers of this type, so it was not checked.",
        "There is nothing to correct. Whoever runs Bookferry can describe the type in bookferry.toml.",
    ),
    "type_missing": Advice("The identifier has no type.", "Choose its type: DOI, ISBN, ISSN or another."),
}
"""Rule → what to tell of a value that is no identifier."""

FINDINGS = {
    "file": Advice(
        "The content of this file could not be had.",
        "Open the file in the library. If it opens, the next backup gets it; if not, upload it again, or remove it.",
    ),
    "shared": Advice(
        "{many} records have the same {name}.",
        "Compare {ids}. If they are of the same publication, keep one of them; if not, correct the {name}.",
    ),
    "same_title": Advice(
        "{many} records have the same title and year.",
        "Compare {ids}. If they are of the same publication, keep one of them.",
    ),
    "no_title": Advice("The record has no title.", "Enter the title."),
    "no_date": Advice(
        "This is no date.",
        "Write it as year, month and day: 1984-06-08. A year, or a year and a month, is understood, too.",
    ),
}
"""Every other finding."""

LABELS = {
    "check_digit": "wrong check digit",
    "length": "wrong length",
    "prefix": "unknown beginning",
    "zeros_unproved": "first zeros uncertain",
    "placeholder": "stands for none",
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
    "unknown_type": "type without a rule",
    "type_missing": "no type",
    "file": "file missing",
    "shared": "on several records",
    "same_title": "same title and year",
    "no_title": "no title",
    "no_date": "date not readable",
}
"""Rule or finding → its name in a list; before it stands the type of the identifier, where there is one."""

_UNEXPLAINED = Advice("This is no {name}.", _COMPARE)
"""For a rule of a later version."""


def name_of(kind: str) -> str:
    """What people call an identifier of a type."""
    return NAMES.get(kind, kind or "identifier")


def label_of(rule: str, kind: str) -> str:
    """The name of a rule or another finding in a list, with that of the identifier: `ISBN: wrong check digit`."""
    label = LABELS.get(rule, rule.replace("_", " "))
    return f"{name_of(kind)}: {label}" if kind else label


def advice_of(rule: str, kind: str) -> Advice:
    """What to tell of a value that is no identifier of a type."""
    found = TO_DO.get(next(reversed(rule_names(rule)), ""), _UNEXPLAINED)
    words = {"name": name_of(kind), "source": SOURCES.get(kind, "the publication")}
    return Advice(found.problem.format(**words), found.suggestion.format(**words))


def advice_on_finding(kind: str, **words: object) -> Advice:
    """What to tell of another finding."""
    found = FINDINGS[kind]
    return Advice(found.problem.format(**words), found.suggestion.format(**words))


def general_advice(rule: str, kind: str) -> Advice:
    """What to tell of many findings that are alike."""
    if rule in FINDINGS:
        return advice_on_finding(rule, name=name_of(kind), many="Several", ids="them")
    return advice_of(rule, kind)


def advice_on_repair(rules: Sequence[str], becomes: str) -> Advice:
    """What to tell of values that were mended, by some rules, to what `becomes` says."""
    problems = [MENDED[rule] for rule in rules if rule in MENDED]
    return Advice(" ".join(problems), DONE.format(becomes=becomes))


def list_identifiers(values: Sequence[tuple[str, str]], most: int = 5) -> str:
    """The first identifiers of a list, for the middle of a sentence: the ISBN 9780306406157 and the ISSN 0378-5955."""
    return words_and([f"the {name_of(kind)} {value}" for kind, value in values[:most]], len(values))


def words_and(words: list[str], of: int) -> str:
    """`1, 2 and 3`; `1, 2, 3 and 7 more` where these are the first of more."""
    parts = words if of <= len(words) else [*words, f"{of - len(words):,} more"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
