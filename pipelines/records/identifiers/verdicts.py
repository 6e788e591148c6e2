"""What is said of one value: its type, its form, how sure we are, and by which rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

VALID = "valid"
"""The text is an identifier in its canonical form, as it stands."""

REPAIRED = "repaired"
"""The text means one identifier and no other; the rules tell how it was brought into its canonical form."""

INVALID = "invalid"
"""The text is meant to be an identifier of the type and breaks its standard; it is left as it was found."""

UNRECOGNISED = "unrecognised"
"""The text does not look like an identifier of the type, or there is no rule for the type."""

VERDICTS = (VALID, REPAIRED, INVALID, UNRECOGNISED)

GOOD = frozenset({VALID, REPAIRED})
"""Verdicts of values that are identifiers."""


class Found(NamedTuple):
    """A value that a text holds. `rule` names the rules that led to it, joined by +; it is empty for what is valid as it stands."""

    type: str
    value: str
    verdict: str
    rule: str


class Identifier(NamedTuple):
    """A value of a record. `raw` is the text of the field, exactly as the service sent it; `position` counts within the record."""

    type: str
    value: str
    raw: str
    source_field: str
    position: int
    verdict: str
    rule: str


def joined(rules: Iterable[str]) -> str:
    """Names of rules as they stand in a column: each once, in the order in which they were used."""
    return "+".join(dict.fromkeys(rules))


def good(kind: str, value: str, rules: Iterable[str]) -> Found:
    """An identifier: valid if it needed no rule, else repaired."""
    rule = joined(rules)
    return Found(kind, value, REPAIRED if rule else VALID, rule)
