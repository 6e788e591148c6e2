"""Further kinds of identifiers, each from a table of the configuration (settings/identifier_types.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pipelines.records.identifiers.cleaning import cleaned
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kind, Kinds
from pipelines.records.identifiers.rules import Rule
from pipelines.records.identifiers.verdicts import INVALID, FoundIdentifier, accepted

_CASES: dict[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower, "keep": str}


def kinds_of(tables: Mapping[str, Mapping[str, Any]]) -> Kinds:
    """The standard kinds, and those of the tables, whose keys and values the settings have checked."""
    return Kinds(_kind_of(name, **table) for name, table in tables.items()) if tables else STANDARD_KINDS


def _kind_of(name: str, *, pattern: str, fields: tuple[str, ...], case: str, identifies: bool) -> Kind:
    read = partial(_read, name, re.compile(pattern, re.ASCII), _CASES[case])
    # no look before the reading: a single pattern is quick enough
    return Kind(name, fields or (name,), lambda _text: False, read, "", identifies)


def _read(name: str, pattern: re.Pattern[str], in_case: Callable[[str], str], text: str) -> list[FoundIdentifier]:
    """The value of a text: a field of such a type has one. What the pattern takes as it stands is not cleaned."""
    tidy, rules = (text, ()) if pattern.fullmatch(in_case(text)) else cleaned(text)
    value = in_case(tidy)
    if not pattern.fullmatch(value):
        return [FoundIdentifier(name, tidy, INVALID, Rule.FORM)]
    return [accepted(name, value, rules if value == tidy else (*rules, Rule.CASE))]
