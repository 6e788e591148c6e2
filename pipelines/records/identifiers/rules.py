"""Every rule for identifiers and dates by name, with its meaning for people. docs/identifiers.md has the same table."""

from __future__ import annotations

SPELLING = {
    "case": "Upper and lower case were changed to the standard's form; the standard treats them alike.",
    "hyphens": "Hyphens, blanks or points inside the number were removed, or moved to their place in the standard.",
    "sbn": "A Standard Book Number from before 1970 got the zero that makes it an ISBN-10.",
    "isbn_10": "An ISBN-10 was changed to the ISBN-13 of the same book.",
}
"""Rules for right values in another spelling. Librarians need not check them."""

REPAIRS = {
    "white_space": "Blanks around the value, or unusual blanks in it, were removed.",
    "invisible": "Invisible characters were removed: zero-width blanks, soft hyphens, byte order marks, direction marks.",
    "lookalikes": "Dashes, digits of other scripts, full-width characters or a Greek or Cyrillic X were replaced by the right character.",
    "entities": "HTML entities such as &lt; were decoded.",
    "latex": "LaTeX commands, braces and escapes were removed.",
    "enclosed": "Brackets or quotation marks around the value were removed.",
    "label": "A name before the value, such as DOI: or ISBN, was removed.",
    "address": "The value was taken from the web address of its resolver.",
    "percent_encoding": "Percent-encoded characters were decoded.",
    "qualifier": "Words about the value, such as (pbk.) or print, were removed.",
    "punctuation": "Punctuation of a catalogue card around the value was removed.",
    "leading_zeros": "Zeros that a spreadsheet had removed were added; with them the check digit is right.",
    "surplus_zeros": "Zeros before a PMID were removed.",
    "decimal_zero": "The number was written as a decimal (.0).",
    "exponent": "The number was written with an exponent, and all its digits are there.",
    "ean": "The ISSN was taken from the bar code number 977….",
    "version": "The version after an arXiv identifier was removed; the paper is the same.",
    "subject_class": "The subject class of an arXiv identifier was removed.",
    "archive": "The archive of an old arXiv identifier was after the number.",
    "arxiv_doi": "The arXiv identifier was taken from the DOI that arXiv gives each paper.",
    "split": "The field has several values; this is one of them.",
    "repeated": "The field has the same identifier more than once.",
    "other_type": "The value certainly has another type than its field.",
}
"""Rules for repaired or split values. The result is certain."""

DATES = {
    "date_order": "Day, month and year of a date were in another order or form, and only one reading is a date: 7/19/2018.",
}
"""Rules for repaired dates of publication."""

FAULTS = {
    "check_digit": "The check digit is wrong: at least one character was mistyped.",
    "length": "Too few or too many digits.",
    "prefix": "The standard has no numbers with this beginning.",
    "zeros_unproved": "Zeros may be missing; other text beside the number makes that uncertain. An ISSN without its hyphen looks alike.",
    "placeholder": "A placeholder, such as 0000000000.",
    "music_number": "979-0 is the beginning of an ISMN, the number of printed music; it is not an ISBN.",
    "digits_lost": "A spreadsheet wrote the number with an exponent and lost its last digits.",
    "ambiguous": "The text can be split in more than one way.",
    "blank_inside": "There is a blank inside; the text after it may or may not belong to the value.",
    "dash_inside": "There is a long dash in the value; only the publisher knows the right character.",
    "character": "A character that cannot be part of the value.",
    "fragment": "The web address has a part after # that may or may not belong to the DOI.",
    "suffix": "There is nothing after the prefix of the DOI.",
    "date": "The year and month in the arXiv identifier are impossible.",
    "serial": "The number within the month has the wrong count of digits for that month, or is zero.",
    "archive_unknown": "arXiv has no archive of that name.",
    "form": "The value does not have the configured form of its type.",
}
"""Why a value is invalid."""

UNRECOGNISED_REASONS = {
    "text": "Words, not an identifier of this type.",
    "nothing": "A word or sign for “nothing”, such as n/a.",
    "blank": "Only blanks.",
    "too_long": "Far longer than any identifier.",
    "unknown_type": "There is no rule for identifiers of this type.",
    "type_missing": "The entry names no type.",
}
"""Why a value is not recognised."""

RULES = SPELLING | REPAIRS | FAULTS | UNRECOGNISED_REASONS
"""Name → meaning."""
