"""arXiv identifiers (info.arxiv.org, "Understanding the arXiv identifier"): YYMM.number, or archive/YYMMnumber until March 2007.

The canonical form names the paper: without `arXiv:`, version and subject class.
"""

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

# fmt: off
ARCHIVES = frozenset({
    "acc-phys", "adap-org", "alg-geom", "ao-sci", "astro-ph", "atom-ph", "bayes-an", "chao-dyn", "chem-ph",
    "cmp-lg", "comp-gas", "cond-mat", "cs", "dg-ga", "funct-an", "gr-qc", "hep-ex", "hep-lat",
    "hep-ph", "hep-th", "math", "math-ph", "mtrl-th", "nlin", "nucl-ex", "nucl-th", "patt-sol",
    "physics", "plasm-ph", "q-alg", "q-bio", "quant-ph", "solv-int", "supr-con",
})
# fmt: on
"""Every archive that gave identifiers of its own, until March 2007."""

_FIRST_NEW, _FIRST_FIVE_DIGITS, _LAST = "0704", "1501", "4912"
"""Months. The scheme lasts until 2106, but today a month after 2049 is a typing error."""

_FIRST_YEAR, _LAST_OLD = "91", "0703"

_ADDRESS = (
    r"(?:https?://)?(?:(?:[a-z]{2,6}\.)?(?:arxiv\.org|xxx\.lanl\.gov)/(?:(?:abs|pdf|html|ps|format|e-print|src)/)?(?:arxiv:)?"
    rf"|{REGISTRIES}arxiv[:/])"
)
_DOI = r"(?:(?:https?://(?:dx\.|www\.)?doi\.org/|doi:\s*))?10\.48550/arxiv\."
_LABEL = r"(?:oai:arxiv\.org:|info:arxiv/|(?:arxiv\s+(?:preprint|e-?prints?)\s+)?arxiv\s*[:/ ]\s*|(?:corr[ ,]*)?abs/|e-?print\s*:?\s+)+"
_ID = r"[0-9]{4}\.[0-9]{4,6}|[a-z]+(?:-[a-z]+)?(?:\.[a-z]{2}(?:-[a-z]+)?)?/[0-9]{7}|[0-9]{7}(?=(?:v[0-9]+)?\s*\[)"
_CLASS = r"\s*(?:\[(?P<classes>[a-z:., -]+)\]|\([a-z-]+(?:\.[a-z-]+)?\))"
_TOKEN = re.compile(
    rf"[\[(<{{]?(?:(?P<address>{_ADDRESS})|(?P<doi>{_DOI})|(?P<label>{_LABEL}))?(?P<id>{_ID})(?P<version>v[1-9][0-9]{{0,2}})?"
    rf"(?P<end>(?:\.pdf)?/?(?:\?[a-z_]+=[^\s;,|]*)?)(?P<class>{_CLASS})?[\])>}}]?(?:\.(?=$| |;|,))?(?![\w.+-])",
    re.IGNORECASE,
)
_NEW = re.compile(r"[0-9]{4}\.[0-9]{4,5}")
_SEPARATOR = re.compile(r"\s*(?:[;,|]|\band\b)?\s*", re.IGNORECASE)
_WRITTEN = {"address": Rule.ADDRESS, "doi": Rule.ARXIV_DOI, "label": Rule.LABEL, "version": Rule.VERSION}
"""What may stand beside an identifier → the rule for it."""


def is_canonical(text: str) -> bool:
    """Whether a text is an identifier of today's form and nothing else."""
    return _NEW.fullmatch(text) is not None and _new_fault(*text.split(".")) is None


def read(text: str) -> list[FoundIdentifier]:
    """Every arXiv identifier in a text, valid or not."""
    tidy, rules = cleaned(text)
    tidy, more = in_ascii(tidy)
    identifiers: list[FoundIdentifier] = []
    position = 0
    while token := _TOKEN.match(tidy, position):
        identifiers.append(_validate(token, [*rules, *more]))
        separator = _SEPARATOR.match(tidy, token.end())
        position = separator.end() if separator else token.end()
    if not identifiers:
        return [FoundIdentifier("arxiv_id", text, UNRECOGNISED, Rule.TEXT)]
    if rest := tidy[position:].strip():
        identifiers.append(FoundIdentifier("arxiv_id", rest, UNRECOGNISED, Rule.TEXT))
    return without_repetition(identifiers)


def _validate(token: re.Match[str], rules: list[str]) -> FoundIdentifier:
    written = token["id"]
    for name, rule in _WRITTEN.items():
        rules += [rule] * (token[name] is not None)
    rules += [Rule.ADDRESS] * (token["end"] != "")
    if "." in written and "/" not in written:
        value = written
        fault = _new_fault(*written.split("."))
        rules += [Rule.SUBJECT_CLASS] * (token["class"] is not None)
    else:
        archive, number, more = _old_parts(token)
        value = f"{archive}/{number}"
        fault = _old_fault(archive, number)
        rules += more
    return FoundIdentifier("arxiv_id", written, INVALID, fault) if fault else accepted("arxiv_id", value, rules)


def _old_parts(token: re.Match[str]) -> tuple[str, str, list[Rule]]:
    """Archive and number of an identifier from before April 2007, and the rules that were used."""
    before, slash, number = token["id"].rpartition("/")
    if not slash:
        return (token["classes"] or "").lower().partition(".")[0], number, [Rule.ARCHIVE]
    archive, point, _class = before.partition(".")
    lower = archive.lower()
    return lower, number, [Rule.CASE] * (lower != archive) + [Rule.SUBJECT_CLASS] * bool(point or token["class"])


def _new_fault(month: str, number: str) -> Rule | None:
    if not (_FIRST_NEW <= month <= _LAST and "01" <= month[2:] <= "12"):
        return Rule.MONTH
    digits = 5 if month >= _FIRST_FIVE_DIGITS else 4
    return None if len(number) == digits and number.strip("0") else Rule.SERIAL


def _old_fault(archive: str, number: str) -> Rule | None:
    if archive not in ARCHIVES:
        return Rule.ARCHIVE_UNKNOWN
    month = number[:4]
    if not ("01" <= month[2:] <= "12" and (month[:2] >= _FIRST_YEAR or month <= _LAST_OLD)):
        return Rule.MONTH
    return None if number[4:] != "000" else Rule.SERIAL


UNAMBIGUOUS = rf"{BEFORE}(?:{_ADDRESS}|{_DOI}|arxiv:\s*)(?:{_ID})(?:v[1-9][0-9]*)?{AFTER}"
"""An arXiv identifier in any text: after its name, or in an address of arXiv."""
