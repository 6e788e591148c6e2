"""Every rule by name: what it means to a person who reads it beside a value. The table of docs/identifiers.md is made of this one."""

from __future__ import annotations

SPELLING = {
    "case": "Upper and lower case were brought into the standard's form; the standard makes no difference between them.",
    "hyphens": "Hyphens, blanks or points inside the number were taken out or set where the standard has them.",
    "sbn": "A Standard Book Number of before 1970 got the zero that makes it an ISBN-10.",
    "isbn_10": "An ISBN-10 was written as the ISBN-13 of the same book.",
}
"""Rules for what is right and only written in another way. No librarian has to look at these."""

REPAIRS = {
    "white_space": "Blanks around the value, or blanks other than the ordinary one.",
    "invisible": "Characters without a glyph: zero-width blanks, soft hyphens, byte order marks, direction marks.",
    "lookalikes": "Dashes, full-width characters or a Greek or Cyrillic X in place of the character that belongs there.",
    "entities": "HTML entities such as &lt; were decoded.",
    "latex": "LaTeX commands, braces and escapes were taken off.",
    "enclosed": "Brackets or quotation marks around the value were taken off.",
    "label": "A name before the value, such as DOI: or ISBN, was taken off.",
    "address": "The value was taken out of the web address of its own resolver.",
    "percent_encoding": "Percent-encoded characters were decoded.",
    "qualifier": "Words about the value, such as (pbk.) or print, were taken off.",
    "punctuation": "Punctuation of a catalogue card around the value was taken off.",
    "leading_zeros": "Zeros that a spreadsheet took; with them the check digit holds.",
    "surplus_zeros": "Zeros before a PMID, which has none, were taken off.",
    "decimal_zero": "The number had been written as a decimal (.0).",
    "exponent": "The number had been written with an exponent, and all of its digits are there.",
    "ean": "The ISSN was taken out of the bar code number 977….",
    "version": "The version after an arXiv identifier was taken off: it names the same paper.",
    "subject_class": "The subject class of an arXiv identifier was taken off.",
    "archive": "The archive of an old arXiv identifier stood behind the number.",
    "arxiv_doi": "The arXiv identifier was taken out of the DOI that arXiv gives each paper.",
    "split": "The field holds several values; this is one of them.",
    "repeated": "The field holds the same identifier more than once.",
    "other_type": "The value is certainly of another type than its field.",
}
"""Rules for what had to be mended or taken apart. The result is certain."""

FAULTS = {
    "check_digit": "The check digit is wrong: at least one character was mistyped.",
    "length": "Too few or too many digits.",
    "prefix": "The beginning is not one that the standard has.",
    "zeros_unproved": "Zeros may be missing, but beside other text that is not certain: an ISSN without its hyphen looks the same.",
    "placeholder": "A number that stands for none, such as 0000000000.",
    "music_number": "979-0 begins an ISMN, the number of printed music; it is no ISBN.",
    "digits_lost": "A spreadsheet wrote the number with an exponent and lost its last digits.",
    "ambiguous": "The text can be taken apart in more than one way.",
    "blank_inside": "There is a blank inside; what stands behind it may or may not belong to the value.",
    "dash_inside": "A typographic dash stands where only the publisher knows which character belongs.",
    "character": "A character that cannot be part of the value.",
    "fragment": "The web address has a part after # that may or may not belong to the DOI.",
    "suffix": "There is nothing behind the prefix of the DOI.",
    "date": "The year and month in the arXiv identifier cannot be.",
    "serial": "The number within the month has not as many digits as that month's numbers, or is zero.",
    "archive_unknown": "arXiv has no archive of that name.",
    "form": "The value has not the form that the configuration gives for its type.",
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
