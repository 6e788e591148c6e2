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


class FoundIdentifier(NamedTuple):
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


def join_rules(rules: Iterable[str]) -> str:
    """Names of rules as they stand in a column: each once, in the order in which they were used."""
    return "+".join(dict.fromkeys(rules))


def rule_names(rule: str) -> list[str]:
    """The rules in such a column."""
    return rule.split("+") if rule else []


def accepted(kind: str, value: str, rules: Iterable[str]) -> FoundIdentifier:
    """An identifier: valid if it needed no rule, else repaired."""
    rule = join_rules(rules)
    return FoundIdentifier(kind, value, REPAIRED if rule else VALID, rule)


def without_repetition(found: list[FoundIdentifier]) -> list[FoundIdentifier]:
    """The values of one field, each once; where there is more than one, the field was split."""
    kept: dict[tuple[str, str], FoundIdentifier] = {}
    for one in found:
        key = one[:2]
        if key not in kept:
            kept[key] = one
        elif one.verdict in GOOD:
            kept[key] = kept[key]._replace(verdict=REPAIRED, rule=join_rules((*rule_names(kept[key].rule), "repeated")))
    if len(kept) == 1:
        return list(kept.values())
    return [
        one._replace(verdict=REPAIRED, rule=join_rules(("split", *rule_names(one.rule))))
        if one.verdict in GOOD
        else one
        for one in kept.values()
    ]
