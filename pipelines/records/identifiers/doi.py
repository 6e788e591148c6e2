"""DOI (ISO 26324; DOI Handbook): 10.registrant/suffix, in lower case because case makes no difference.

The suffix may contain any visible character, also `;`, `,`, `<` and `>`. A field is therefore split only where another DOI begins after a
separator. Short DOIs (10/abcde) are DOIs. Only the additions of a resolver's address or an encoding are removed; a point or a bracket at
the end may belong to the DOI and stays.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from pipelines.records.identifiers.cleaning import BEFORE, DASHES, FULL_WIDTH, REGISTRIES, cleaned, in_ascii
from pipelines.records.identifiers.rules import Rule
from pipelines.records.identifiers.verdicts import (
    INVALID,
    UNRECOGNISED,
    FoundIdentifier,
    accepted,
    without_repetition,
)

_PREFIX = r"10\.(?:[1-9][0-9]{3,8}(?:\.[0-9]+)*|97[89]\.[0-9]{2,8})"
"""10 and a registrant; in an ISBN-A, an ISBN's prefix, group and publisher."""

_SHORT = r"10/[a-z0-9]{3,12}"
is_canonical = re.compile(rf"{_PREFIX}/[-._()/:a-z0-9]+").fullmatch
"""Nearly every DOI: alone, with recommended characters only. Nothing in it could be a separator, a label or an encoding."""

_RESOLVER = (
    r"(?:(?:https?:/{0,2})?(?:www\.)?(?:(?:dx[.-])?doi[.-]org(?:[.-][a-z0-9.-]+)?|hdl\.handle\.net)(?::[0-9]+)?/+(?:doi:)?"
    rf"|(?:https?:/{{0,2}})?(?:www\.)?{REGISTRIES}doi[:/]+)"
)
_NAME = (
    r"(?:info:doi/|urn:doi:|doi(?:\s*name)?\s*[:=/\uff1a]+\s*|doi\s*(?=10[./])|[al]id\s*-\s*(?=10\.)"
    r"|isbn-a(?:\s*:)?\s*(?=10\.97|https?:))"
)
"""The name of a DOI; AID and LID are PubMed's."""

_OPEN = r"[\[(<{\"']?"
_STARTS = rf"{_OPEN}(?:{_RESOLVER}|{_NAME})*(?:{_PREFIX}(?:/|%2f)|{_SHORT}(?![^\s;,|]))"
_NO_NAME = "".join(
    rf"(?<!{before}{name})"
    for before in ("^", r"[\s;,|(\[]")
    for name in ("doi", "doi:", "[al]id-", "[al]id -", "isbn-a", "isbn-a:")
)
_BREAK = re.compile(
    rf"(?:\s*[;,|]\s+|{_NO_NAME}\s+(?:(?:and|&)\s+)?|[;,|](?={_OPEN}(?:{_RESOLVER}|{_NAME})*{_PREFIX}/))(?={_STARTS})"
    r"|(?<=\[doi\]|\[pii\])[\s;,|]+",
    re.IGNORECASE,
)
"""Separator of two DOIs. Without a blank it must be followed by a whole prefix, since a suffix may contain these characters.

After each value, PubMed writes its kind in brackets.
"""

_WHOLE = re.compile(rf"{_PREFIX}/(.+)", re.DOTALL)
_SHORT_DOI = re.compile(_SHORT)
_ADDRESS = re.compile(_RESOLVER, re.IGNORECASE)
_LABEL = re.compile(_NAME, re.IGNORECASE)
_TAG = re.compile(r"\s*\[doi\]$", re.IGNORECASE)
_OTHER_DIGITS = re.compile(r"\d\d[.．]\d{3,9}(?:[.．]\d+)*[/／]")
"""A prefix in digits of any script."""

_QUERY = re.compile(r"\?[a-z_]+=[^?]*$", re.IGNORECASE)
_ENCODED = re.compile(r"(?:%[0-9a-f]{2})+", re.IGNORECASE)
_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'", "“": "”", "«": "»"}
_LIKE_A_PREFIX = re.compile(r"[0-9]{0,2}\.?[0-9]{3,9}(?:\.[0-9]+)*/\S|10\.")
_ONLY_A_PREFIX = re.compile(rf"{_PREFIX}/?|10/")
_TO_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_DASH = re.compile(f"[{DASHES}]")


def read(text: str) -> list[FoundIdentifier]:
    """Every DOI in a text, valid or not. Each one is unwrapped until nothing changes."""
    identifiers: list[FoundIdentifier] = []
    waiting: list[tuple[str, tuple[Rule, ...]]] = [(text, ())]
    while waiting:
        piece, rules = waiting.pop()
        if is_canonical(piece.translate(_TO_LOWER)):
            identifiers.append(_in_lower_case(piece, rules))
            continue
        tidy, more = cleaned(piece)
        rules += more
        if not tidy.isascii() and (prefix := _OTHER_DIGITS.search(tidy)) and not prefix[0].isascii():
            tidy, more = in_ascii(tidy, FULL_WIDTH)
            rules += more
        pieces = [part for part in _BREAK.split(tidy) if part]
        if pieces not in ([tidy], []):
            waiting += [(part, rules) for part in reversed(pieces)]
            continue
        bare, more = _unwrapped(tidy)
        if bare != tidy:
            waiting.append((bare, rules + more))
        elif bare:
            identifiers.append(_validate(bare, rules))
    if all(identifier.verdict == UNRECOGNISED for identifier in identifiers):
        return [FoundIdentifier("doi", text, UNRECOGNISED, Rule.TEXT)]
    return without_repetition(identifiers)


def _unwrapped(text: str) -> tuple[str, tuple[Rule, ...]]:
    """The text without one layer of wrapping, and the name of the rule; the text itself if it has no wrapping."""
    closing = _BRACKETS.get(text[:1])
    if closing and text[-1:] == closing and _is_balanced(text[1:-1], text[0], closing):
        return text[1:-1].strip(), (Rule.ENCLOSED,)
    if address := _ADDRESS.match(text):
        return _resolved(text[address.end() :]) or text, (Rule.ADDRESS,)
    if label := _LABEL.match(text):
        return text[label.end() :], (Rule.LABEL,)
    if tag := _TAG.search(text):
        return text[: tag.start()], (Rule.QUALIFIER,)
    decoded = _ENCODED.sub(_decoded, text)
    if decoded != text:
        return decoded, (Rule.PERCENT_ENCODING,)
    return text, ()


def _resolved(path: str) -> str | None:
    """The DOI in a resolver's address; None if that is not certain."""
    rest = _QUERY.sub("", path)
    if "#" in rest:
        return None
    short = f"10/{rest.lower()}"
    return short if _SHORT_DOI.fullmatch(short) else rest


def _is_balanced(inner: str, opening: str, closing: str) -> bool:
    """Whether the brackets around this text are a pair."""
    if opening == closing:
        return opening not in inner
    depth = 0
    for character in inner:
        depth += (character == opening) - (character == closing)
        if depth < 0:
            return False
    return depth == 0


def _decoded(encoded: re.Match[str]) -> str:
    """The text of percent-encoded bytes; unchanged if it is not visible."""
    text = unquote(encoded[0], errors="replace")
    return text if text.isprintable() and " " not in text and "\ufffd" not in text else encoded[0]


def _validate(text: str, rules: tuple[Rule, ...]) -> FoundIdentifier:
    identifier = _in_lower_case(text, rules)
    if not _SHORT_DOI.fullmatch(identifier.value) and (fault := _fault(text)):
        return FoundIdentifier("doi", text, UNRECOGNISED if fault == Rule.TEXT else INVALID, fault)
    return identifier


def _in_lower_case(text: str, rules: tuple[Rule, ...]) -> FoundIdentifier:
    """Only letters of ASCII have no case in a DOI."""
    lower = text.translate(_TO_LOWER)
    return accepted("doi", lower, rules if lower == text else (*rules, Rule.CASE))


def _fault(text: str) -> Rule | None:
    if _ONLY_A_PREFIX.fullmatch(text):
        return Rule.SUFFIX
    whole = _WHOLE.fullmatch(text)
    if not whole:
        if _ADDRESS.match(text):
            return Rule.FRAGMENT if "#" in text else Rule.SUFFIX
        return Rule.PREFIX if _LIKE_A_PREFIX.match(text) else Rule.TEXT
    suffix = whole[1]
    if " " in suffix:
        return Rule.BLANK_INSIDE
    if not suffix.isprintable() or "\ufffd" in suffix or _ENCODED.search(suffix):
        return Rule.CHARACTER
    return Rule.DASH_INSIDE if _DASH.search(suffix) else None


UNAMBIGUOUS = (
    rf"{BEFORE}(?:{_RESOLVER}|{_NAME})?{_PREFIX}/[^\s]+?(?=[;,|]?(?:\s|$)|[;,|](?:{_RESOLVER}|{_NAME})?{_PREFIX}/)"
)
"""A DOI in any text."""
