"""Every rule for identifiers, dates and records: its name, and what people read of it. The functions that follow a rule name it.

The sentence, the label and the advice of a rule are here and nowhere else: report, workbook, plan and data dictionary show them. In them,
`{name}` is the librarians' name of the identifier, `{source}` the place where the right one is printed, `{ids}` the records that look
alike, `{many}` their number. Most rules belong to several standards, so they stand together.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Sort(StrEnum):
    """What a rule is about; the headings of the data dictionary."""

    SPELLING = "Spelling: nothing was wrong"
    REPAIR = "Repairs: the result is certain"
    DATE = "Repairs of dates"
    INVALID = "Why a value is invalid"
    UNRECOGNISED = "Why a value is unrecognised"
    RECORD = "What else is to be looked at in a record"


_SPELLING, _REPAIR, _DATE, _INVALID, _UNRECOGNISED, _RECORD = Sort
_COMPARE = "Compare with {source}, and correct the {name}."


class Rule(StrEnum):
    """A rule. Its text is its name in the column `rule` and its code in tables of issues: no name is ever changed."""

    sort: Sort
    sentence: str
    """What the value is like, or why it is no identifier."""
    label: str
    """Its name in a list, after the name of the identifier; empty for rules about which nobody has to do anything."""
    to_do: str
    """The advice to a librarian; empty for the same rules."""

    def __new__(cls, name: str, sort: Sort, sentence: str, label: str = "", to_do: str = "") -> Self:
        """A member from its values."""
        rule = str.__new__(cls, name)
        rule._value_, rule.sort, rule.sentence, rule.label, rule.to_do = name, sort, sentence, label, to_do
        return rule

    CASE = "case", _SPELLING, "It has other capital or small letters than the standard, which treats them alike."
    HYPHENS = "hyphens", _SPELLING, "The number has hyphens, blanks or points in the wrong places, or lacks them."
    SBN = "sbn", _SPELLING, "It is a Standard Book Number from before 1970, without the zero of an ISBN."
    ISBN_10 = "isbn_10", _SPELLING, "It is an ISBN of 10 digits; the ISBN-13 of the same book stands for it."

    WHITE_SPACE = "white_space", _REPAIR, "There are blanks around the value, or unusual blanks in it."
    INVISIBLE = (
        "invisible",
        _REPAIR,
        "There are invisible characters in it. Text that is copied from a web page or a PDF often has them.",
    )
    LOOKALIKES = "lookalikes", _REPAIR, "A dash, digit or letter only looks like the right one."
    ENTITIES = "entities", _REPAIR, "Signs are written as HTML codes, such as &lt; for <."
    LATEX = "latex", _REPAIR, "There are LaTeX commands, braces or escapes in it."
    ENCLOSED = "enclosed", _REPAIR, "There are brackets or quotation marks around it."
    LABEL = "label", _REPAIR, "The name of the identifier is written before it, such as DOI: or ISBN."
    ADDRESS = "address", _REPAIR, "It is written as a web address."
    PERCENT_ENCODING = "percent_encoding", _REPAIR, "Signs are written as percent codes, such as %2F for /."
    QUALIFIER = "qualifier", _REPAIR, "There are words beside it, such as (pbk.) or print."
    PUNCTUATION = "punctuation", _REPAIR, "There is punctuation around it, as on a catalogue card."
    LEADING_ZEROS = (
        "leading_zeros",
        _REPAIR,
        "Its first zeros are missing: a spreadsheet removed them. With them, the check digit is right.",
    )
    SURPLUS_ZEROS = "surplus_zeros", _REPAIR, "There are zeros before it."
    DECIMAL_ZERO = "decimal_zero", _REPAIR, "A spreadsheet wrote the number as a decimal (.0)."
    EXPONENT = "exponent", _REPAIR, "A spreadsheet wrote the number with an exponent, but all its digits are there."
    EAN = "ean", _REPAIR, "The field has the journal's bar code number (977…) instead of the ISSN."
    VERSION = "version", _REPAIR, "It names one version of the paper (v2)."
    SUBJECT_CLASS = "subject_class", _REPAIR, "There is a subject class beside it."
    ARCHIVE = "archive", _REPAIR, "The archive is written after the number."
    ARXIV_DOI = (
        "arxiv_doi",
        _REPAIR,
        "The field has arXiv's own DOI of the paper instead of the arXiv identifier.",
    )
    SPLIT = "split", _REPAIR, "There are several identifiers in one field."
    REPEATED = "repeated", _REPAIR, "The same identifier is in the field more than once."
    OTHER_TYPE = "other_type", _REPAIR, "This identifier certainly has another type than the field."

    DATE_ORDER = (
        "date_order",
        _DATE,
        "Day, month and year are in another order or form, but only one reading is a date: 7/19/2018, 19 July 2018.",
    )

    CHECK_DIGIT = (
        "check_digit",
        _INVALID,
        "The check digit is wrong: at least one character of the {name} was mistyped.",
        "wrong check digit",
        _COMPARE,
    )
    LENGTH = "length", _INVALID, "The {name} has too few or too many digits.", "wrong length", _COMPARE
    PREFIX = (
        "prefix",
        _INVALID,
        "No {name} begins like this.",
        "unknown beginning",
        f"It may be a number of another kind. {_COMPARE}",
    )
    ZEROS_UNPROVED = (
        "zeros_unproved",
        _INVALID,
        "Zeros may be missing at the beginning, but that is not certain.",
        "first zeros uncertain",
        _COMPARE,
    )
    PLACEHOLDER = (
        "placeholder",
        _INVALID,
        "This number is only a placeholder.",
        "placeholder",
        "Clear the field, or enter the right {name} if it has one.",
    )
    MUSIC_NUMBER = (
        "music_number",
        _INVALID,
        "This is an ISMN (979-0), the number of printed music, not an ISBN.",
        "number of printed music",
        "Move it to a field for other numbers. If the music also has an ISBN, enter the ISBN.",
    )
    DIGITS_LOST = (
        "digits_lost",
        _INVALID,
        "A spreadsheet wrote the number with an exponent (9.78E+12), and its last digits are lost.",
        "last digits lost",
        "Enter the {name} again from {source}. In a spreadsheet, set the format of such columns to Text before you enter numbers.",
    )
    AMBIGUOUS = (
        "ambiguous",
        _INVALID,
        "The text may be several numbers, and it is not clear where each one ends.",
        "values run together",
        "Put a semicolon between the values. Compare with {source}.",
    )
    BLANK_INSIDE = (
        "blank_inside",
        _INVALID,
        "There is a blank inside. The text after it may or may not belong to the {name}.",
        "blank inside",
        "Remove the blank, or the text after it. Compare with {source}.",
    )
    DASH_INSIDE = (
        "dash_inside",
        _INVALID,
        "There is a long dash inside. Only the publisher knows the right character.",
        "long dash inside",
        "Copy the {name} from {source}.",
    )
    CHARACTER = (
        "character",
        _INVALID,
        "There is a character that cannot be part of an identifier of this type.",
        "wrong character",
        _COMPARE,
    )
    FRAGMENT = (
        "fragment",
        _INVALID,
        "The web address has a part after # that may or may not belong to the {name}.",
        "part after #",
        "Remove that part if the {name} also works without it.",
    )
    SUFFIX = "suffix", _INVALID, "The {name} ends after its first part.", "cut off", "Copy all of it from {source}."
    MONTH = "date", _INVALID, "The year and month at its beginning are impossible.", "impossible month", _COMPARE
    SERIAL = (
        "serial",
        _INVALID,
        "The number within the month has too few or too many digits, or is zero.",
        "wrong number in the month",
        _COMPARE,
    )
    ARCHIVE_UNKNOWN = "archive_unknown", _INVALID, "arXiv has no archive of that name.", "unknown archive", _COMPARE
    FORM = "form", _INVALID, "The value does not have the form of its type.", "wrong form", _COMPARE

    TEXT = (
        "text",
        _UNRECOGNISED,
        "The field has words, but no {name}.",
        "words in the field",
        "Move the words to the right field. If the publication has one, copy it from {source}.",
    )
    NOTHING = (
        "nothing",
        _UNRECOGNISED,
        "The field says that there is no {name}, for example with n/a.",
        "a word for nothing",
        "Clear the field: an empty field means the same.",
    )
    BLANK = "blank", _UNRECOGNISED, "The field has only blanks.", "only blanks", "Clear the field."
    TOO_LONG = (
        "too_long",
        _UNRECOGNISED,
        "The text is far longer than any identifier.",
        "far too long",
        "Move the text to the right field, and enter only the {name}.",
    )
    UNKNOWN_TYPE = (
        "unknown_type",
        _UNRECOGNISED,
        "Bookferry has no rule for identifiers of this type, so it was not checked.",
        "unknown type",
        "You need not correct it. The person who runs Bookferry can add this type to bookferry.toml.",
    )
    TYPE_MISSING = (
        "type_missing",
        _UNRECOGNISED,
        "The identifier has no type.",
        "no type",
        "Choose its type: DOI, ISBN, ISSN or another.",
    )

    FILE = (
        "file",
        _RECORD,
        "The content of this file could not be fetched.",
        "file missing",
        "Open the file in the library. If it opens, the next backup will fetch it. If not, upload it again, or remove it.",
    )
    SHARED = (
        "shared",
        _RECORD,
        "{many} records have the same {name}.",
        "on several records",
        "Compare {ids}. If they describe the same publication, keep one of them. If not, correct the {name}.",
    )
    SAME_TITLE = (
        "same_title",
        _RECORD,
        "{many} records have the same title and year.",
        "same title and year",
        "Compare {ids}. If they describe the same publication, keep one of them.",
    )
    NO_TITLE = "no_title", _RECORD, "The record has no title.", "no title", "Enter the title."
    NO_DATE = (
        "no_date",
        _RECORD,
        "This is not a date.",
        "date not readable",
        "Write it as year, month and day: 1984-06-08. Version 3 takes no other form, so a migration leaves it out.",
    )


RULES = {rule.value: rule for rule in Rule}
"""Name → rule. A snapshot that a later version of Bookferry made may have other names."""

SPELLING = tuple(rule for rule in Rule if rule.sort is Sort.SPELLING)
"""Rules for right values in another spelling. Librarians need not check them."""
