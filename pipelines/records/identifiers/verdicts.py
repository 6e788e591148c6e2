"""The result for one value: its type, its canonical form, a verdict, and the rules that led to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pipelines.records.identifiers.rules import Rule

VALID = "valid"
"""The text is an identifier in its canonical form, unchanged."""

REPAIRED = "repaired"
"""The text means one identifier and no other; the rules name the changes to its canonical form."""

INVALID = "invalid"
"""The text should be an identifier of the type and breaks its standard; it stays as found."""

UNRECOGNISED = "unrecognised"
"""The text does not look like an identifier of the type, or there is no rule for the type."""

VERDICTS = (VALID, REPAIRED, INVALID, UNRECOGNISED)

GOOD = frozenset({VALID, REPAIRED})
"""Verdicts of values that are identifiers."""


class FoundIdentifier(NamedTuple):
    """A value in a text. `rule` names the rules that led to it, joined by +; it is empty for an unchanged valid value."""

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
    """Names of rules as the column has them: each once, in the order of use, joined by +."""
    return "+".join(dict.fromkeys(rules))


def rule_names(rule: str) -> list[str]:
    """The names of the rules in such a text."""
    return rule.split("+") if rule else []


def accepted(kind: str, value: str, rules: Iterable[str]) -> FoundIdentifier:
    """An identifier: valid if it needed no rule, else repaired."""
    rule = join_rules(rules)
    return FoundIdentifier(kind, value, REPAIRED if rule else VALID, rule)


def without_repetition(identifiers: list[FoundIdentifier]) -> list[FoundIdentifier]:
    """The values of one field, each once; several values get the rule `split`."""
    if len(identifiers) == 1:
        return identifiers
    unique: dict[tuple[str, str], FoundIdentifier] = {}
    for identifier in identifiers:
        key = identifier[:2]
        if key not in unique:
            unique[key] = identifier
        elif identifier.verdict in GOOD:
            unique[key] = unique[key]._replace(
                verdict=REPAIRED, rule=join_rules((*rule_names(unique[key].rule), Rule.REPEATED))
            )
    if len(unique) == 1:
        return list(unique.values())
    return [
        identifier._replace(verdict=REPAIRED, rule=join_rules((Rule.SPLIT, *rule_names(identifier.rule))))
        if identifier.verdict in GOOD
        else identifier
        for identifier in unique.values()
    ]
