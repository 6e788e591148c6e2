"""PMID (NLM): the number of a record of PubMed, 1 to 8 digits without leading zeros. It has no check digit."""

from __future__ import annotations

import re

from pipelines.records.identifiers.cleaning import AFTER, BEFORE, REGISTRIES, cleaned, in_ascii
from pipelines.records.identifiers.rules import Rule
from pipelines.records.identifiers.verdicts import (
    INVALID,
    UNRECOGNISED,
    FoundIdentifier,
    accepted,
    without_repetition,
)

is_canonical = re.compile(r"[1-9][0-9]{0,7}").fullmatch
_SEPARATOR = re.compile(r"[;|]|,(?= |[Pp])|(?<=[0-9]) (?=PMC)")
_LABEL = re.compile(
    r"^\[?(?:info:|urn:)?(?:(?:pubmed )?pmids?|pubmed(?:[ _-]?id)?)(?![^\W\d]|\.)\s*[:=#/-]*\s*", re.IGNORECASE
)
_ADDRESS = re.compile(
    r"(?:https?://)?(?:www\.)?(?:(?:rdf\.)?ncbi\.nlm\.nih\.gov/(?:m/)?pubmed(?:/|(?=\?))|pubmed\.gov/|pubmed\.ncbi\.nlm\.nih\.gov/"
    r"|ncbi\.nlm\.nih\.gov/entrez/query\.fcgi(?=\S*db=pubmed)\S*list_uids="
    rf"|europepmc\.org/(?:abstract|article)/med/|{REGISTRIES}pubmed[:/])(?:\?term=)?([0-9]+)"
    r"(?:(?:\[|%5b)(?:pmid|uid)(?:\]|%5d))?/?(?:[?#&][^\s;|,]*)?",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"\s*\[(?:PubMed[^\[\]0-9]*|PMID|UID|Indexed for MEDLINE)\]\.?$|\s*\((?:PMID|PubMed)\)$", re.IGNORECASE
)
_AROUND = " .{}()[]<>\"'"
_DECIMAL = re.compile(r"([0-9]{1,8})\.0+")
_ROW = re.compile(r"[1-9][0-9]{6,7}(?:[ ,]+[1-9][0-9]{6,7})+")
"""Several numbers, each too long to be a part of another one."""

_DIGITS_APART = re.compile(r"[0-9]+(?:[ ,]+[0-9]+)+")


def read(text: str) -> list[FoundIdentifier]:
    """Every PMID in a text, valid or not."""
    tidy, rules = cleaned(text)
    tidy, more = in_ascii(tidy)
    identifiers = [
        identifier
        for piece in _SEPARATOR.split(tidy)
        if piece.strip()
        for identifier in _read_piece(piece.strip(), (*rules, *more))
    ]
    if all(identifier.verdict == UNRECOGNISED for identifier in identifiers):
        return [FoundIdentifier("pmid", text, UNRECOGNISED, Rule.TEXT)]
    return without_repetition(identifiers)


def _read_piece(piece: str, rules: tuple[str, ...]) -> list[FoundIdentifier]:
    used = list(rules)
    bare = piece
    for pattern, rule in ((_REMARK, Rule.QUALIFIER), (_LABEL, Rule.LABEL)):
        bare, count = pattern.subn("", bare)
        used += [rule] * (count > 0)
    if bare.strip(_AROUND) != bare:
        bare = bare.strip(_AROUND)
        used.append(Rule.ENCLOSED)
    if address := _ADDRESS.fullmatch(bare):
        bare = address[1]
        used.append(Rule.ADDRESS)
    if decimal := _DECIMAL.fullmatch(bare):
        bare = decimal[1]
        used.append(Rule.DECIMAL_ZERO)
    if bare.isascii() and bare.isdigit():
        return [_validate(bare, used)]
    if _ROW.fullmatch(bare):
        return [_validate(number, used) for number in re.split("[ ,]+", bare)]
    if _DIGITS_APART.fullmatch(bare):
        return [FoundIdentifier("pmid", bare, INVALID, Rule.AMBIGUOUS)]
    return [FoundIdentifier("pmid", piece, UNRECOGNISED, Rule.TEXT)]


def _validate(digits: str, rules: list[str]) -> FoundIdentifier:
    number = digits.lstrip("0")
    if not number:
        return FoundIdentifier("pmid", digits, INVALID, Rule.PLACEHOLDER)
    if not is_canonical(number):
        return FoundIdentifier("pmid", digits, INVALID, Rule.LENGTH)
    return accepted("pmid", number, (*rules, *([Rule.SURPLUS_ZEROS] * (number != digits))))


UNAMBIGUOUS = rf"{BEFORE}(?:pmid ?[: -] ?[1-9][0-9]{{0,7}}|[1-9][0-9]{{0,7}} ?\[pmid\]|{_ADDRESS.pattern}){AFTER}"
"""A PMID in any text: beside its name, or in an address of PubMed."""
