"""Identifiers of whole records: reads v2's flat fields and v3's typed list (I7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pipelines.publication_fields import IDENTIFIER_LIST
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import UNRECOGNISED, Identifier
from pipelines.records.values import text_of


def identify(record: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS) -> list[Identifier]:
    """Every identifier of a record of either version, flat fields first. Accepts any JSON."""
    found: list[Identifier] = []
    read_fields(record, found, kinds)
    entries = record.get(IDENTIFIER_LIST)
    if type(entries) is list:
        for entry in entries:
            read_entry(*type_and_value(entry), found, kinds)
    return found


def read_fields(record: Mapping[str, Any], found: list[Identifier], kinds: Kinds) -> None:
    """Add to `found` the identifiers of a record's flat fields."""
    for field, kind in kinds.fields:
        value = record.get(field)
        if value is None or value == "":
            continue
        for text in value if type(value) is list else (value,):
            raw = text_of(text) or ""
            _append(found, kinds.read(kind.name, raw), raw, field)


def read_entry(kind: str, raw: str, found: list[Identifier], kinds: Kinds) -> bool:
    """Add to `found` the identifiers of an entry of v3's list. Returns whether all have the type of the entry."""
    values = kinds.read(kind, raw)
    _append(found, values, raw, IDENTIFIER_LIST)
    return all(one.type == kind for one in values)


def _append(found: list[Identifier], values: Iterable[Sequence[str]], raw: str, field: str) -> None:
    for kind, value, verdict, rule in values:
        found.append(Identifier(kind, value, raw, field, len(found), verdict, rule))


def type_and_value(entry: object) -> tuple[str, str]:
    """Type and value of an entry of the list, as text."""
    if type(entry) is dict:
        return text_of(entry.get("type")) or "", text_of(entry.get("value")) or ""
    return "", text_of(entry) or ""


def is_sent(one: Identifier, verdicts: AbstractSet[str]) -> bool:
    """Whether the value of a flat field is sent, where values with these verdicts are: blanks never are."""
    return one.verdict in verdicts and (one.verdict != UNRECOGNISED or bool(one.value.strip()))
