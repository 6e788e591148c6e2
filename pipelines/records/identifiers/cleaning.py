"""Removes characters that do not belong to identifiers: entities, LaTeX, invisible characters, odd blanks, lookalikes of ASCII."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from pipelines.records.identifiers.rules import Rule

MAX_CHARACTERS = 2048
"""Longest text that is read; a longer field holds no identifier (I13)."""

BEFORE, AFTER = r"(?<![\w./-])", r"(?![\w/-]|\.\w)"
"""Around a number in any text: it is not part of a longer word, number or address."""

REGISTRIES = r"(?:identifiers\.org|n2t\.net|bioregistry\.io)/"
"""Resolvers of all kinds of identifiers: the name of the kind follows, then a colon or a slash."""

_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)

_END = r"(?:\{\}|\s|(?![A-Za-z]))"
"""End of the name of a LaTeX command."""


def _sign(name: str, sign: str) -> tuple[re.Pattern[str], str]:
    """LaTeX's ways to write a sign that it does not accept directly."""
    return re.compile(
        rf"\{{\\{name}(?:\{{\}})?\}}|\\{name}{_END}|\${sign}\$|\{{\\?{sign}\}}|\\ensuremath\{{{sign}\}}"
    ), sign


_LATEX = (
    (re.compile(r"\\textbackslash(?:\{\})?[rnt](?![a-z])"), " "),
    (re.compile(r"\\href\s*\{([^{}]*)\}\s*\{[^{}0-9]*\}"), r"\1"),
    (re.compile(r"\\href\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"\1; \2"),
    (re.compile(r"\\(?:url|nolinkurl|path|texttt|textrm|textit|textbf|emph|text|mbox)\s*\{([^{}]*)\}"), r"\1"),
    _sign("textless", "<"),
    _sign("textgreater", ">"),
    _sign("textunderscore", "_"),
    _sign("slash", "/"),
    (re.compile(r"\{\\([_%&#])\}|\\([_%&#])(?:\{\})?"), r"\1\2"),
    (re.compile(r"\\-"), ""),
    (re.compile(r"\\[,;: ]"), " "),
)
"""LaTeX for one character, or around a value; applied in this order."""

_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")
_BLANKS = re.compile(r"\s+")

FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
"""Full-width character → the same in ASCII."""

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63"
"""Hyphens, dashes and the minus sign."""

_LOOKALIKES: Mapping[int, int | str] = (
    FULL_WIDTH | dict.fromkeys(map(ord, DASHES), "-") | dict.fromkeys(map(ord, "ΧχХх"), "X")
)


def cleaned(text: str) -> tuple[str, tuple[Rule, ...]]:
    """The cleaned text, and the names of the rules that changed it. Idempotent."""
    rules: list[Rule] = []
    before = None
    while before != text:
        before = text
        if "&" in text:
            text = _record_rule(
                text, _ENTITY.sub(lambda entity: html.unescape(entity[0].lower()), text), Rule.ENTITIES, rules
            )
        if "\\" in text or "$" in text or "{" in text:
            text = _record_rule(text, _without_latex(text), Rule.LATEX, rules)
        text = _record_rule(text, _INVISIBLE.sub("", text), Rule.INVISIBLE, rules)
        text = _record_rule(text, _BLANKS.sub(" ", text).strip(), Rule.WHITE_SPACE, rules)
    return text, tuple(dict.fromkeys(rules))


def in_ascii(text: str, lookalikes: Mapping[int, int | str] = _LOOKALIKES) -> tuple[str, tuple[Rule, ...]]:
    """The text with digits of any script, and with lookalikes of hyphens and X, replaced by those of ASCII."""
    if text.isascii():
        return text, ()
    digits = {ord(character): str(int(character)) for character in text if character.isdecimal()}
    ascii_text = text.translate({**lookalikes, **digits})
    return ascii_text, () if ascii_text == text else (Rule.LOOKALIKES,)


def _without_latex(text: str) -> str:
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    if text[:1] == "{" and text[-1:] == "}" and "{" not in text[1:-1] and "}" not in text[1:-1]:
        text = text[1:-1]
    return text


def _record_rule(before: str, after: str, rule: Rule, rules: list[Rule]) -> str:
    if after != before:
        rules.append(rule)
    return after
