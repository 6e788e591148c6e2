"""Further kinds of identifiers, each from a table of the configuration (settings/identifier_types.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from pydantic import TypeAdapter

from pipelines.records.identifiers.cleaning import cleaned
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kind, Kinds
from pipelines.records.identifiers.rules import Rule
from pipelines.records.identifiers.verdicts import INVALID, FoundIdentifier, accepted
from pipelines.settings.identifier_types import IdentifierSettings

_TABLES = TypeAdapter(dict[str, IdentifierSettings])
_CASES: dict[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower, "keep": str}


def kinds_of(tables: Mapping[str, IdentifierSettings]) -> Kinds:
    """The standard kinds, and those of the tables."""
    if not tables:
        return STANDARD_KINDS
    described = _TABLES.dump_json(dict(tables), exclude_defaults=True).decode()
    return Kinds([_kind_of(name, table) for name, table in tables.items()], described)


def _kind_of(name: str, table: IdentifierSettings) -> Kind:
    read = partial(_read, name, re.compile(table.pattern, re.ASCII), _CASES[table.case])
    # no look before the reading: a single pattern is quick enough
    return Kind(name, table.fields or (name,), lambda _text: False, read, "", table.identifies)


def _read(name: str, pattern: re.Pattern[str], in_case: Callable[[str], str], text: str) -> list[FoundIdentifier]:
    """The value of a text: a field of such a type has one. What the pattern takes as it stands is not cleaned."""
    tidy, rules = (text, ()) if pattern.fullmatch(in_case(text)) else cleaned(text)
    value = in_case(tidy)
    if not pattern.fullmatch(value):
        return [FoundIdentifier(name, tidy, INVALID, Rule.FORM)]
    return [accepted(name, value, rules if value == tidy else (*rules, Rule.CASE))]
