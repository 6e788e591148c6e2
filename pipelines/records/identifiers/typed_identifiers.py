"""Identifiers of whole records: reads v2's flat fields and v3's typed list (I7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.identifiers.verdicts import Identifier
from pipelines.records.tables.publication_fields import IDENTIFIER_LIST
from pipelines.records.values import text_of


def read_fields(record: Mapping[str, Any], identifiers: list[Identifier], kinds: Kinds) -> None:
    """Add to `identifiers` the identifiers of a record's flat fields."""
    for field, kind in kinds.fields:
        value = record.get(field)
        if value is None or value == "":
            continue
        for text in value if type(value) is list else (value,):
            raw = text_of(text) or ""
            _append(identifiers, kinds.read(kind.name, raw), raw, field)


def read_entry(kind: str, raw: str, identifiers: list[Identifier], kinds: Kinds) -> bool:
    """Add to `identifiers` the identifiers of an entry of v3's list. Returns whether all have the type of the entry."""
    values = kinds.read(kind, raw)
    _append(identifiers, values, raw, IDENTIFIER_LIST)
    return all(value.type == kind for value in values)


def _append(identifiers: list[Identifier], values: Iterable[Sequence[str]], raw: str, field: str) -> None:
    for kind, value, verdict, rule in values:
        identifiers.append(Identifier(kind, value, raw, field, len(identifiers), verdict, rule))


def type_and_value(entry: object) -> tuple[str, str]:
    """Type and value of an entry of the list, as text."""
    if type(entry) is dict:
        return text_of(entry.get("type")) or "", text_of(entry.get("value")) or ""
    return "", text_of(entry) or ""
