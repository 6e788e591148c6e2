"""Identifiers of whole records: reads v2's flat fields and v3's typed list, and rebuilds the fields from the list (I7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pipelines.publication_fields import IDENTIFIER_LIST
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import GOOD, UNRECOGNISED, Identifier
from pipelines.records.values import text_of

RawIdentifier = dict[str, str]
"""One entry of v3's list: type and value."""


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


def count_left_out(identifiers: Iterable[Identifier], verdicts: AbstractSet[str]) -> int:
    """How many values of flat fields are not sent; entries of v3's list always are."""
    return sum(one.source_field != IDENTIFIER_LIST and not is_sent(one, verdicts) for one in identifiers)


def entries_of(identifiers: Iterable[Identifier], verdicts: AbstractSet[str] = GOOD) -> list[RawIdentifier]:
    """The list for v3: each identifier with one of these verdicts once, in the order of the record."""
    chosen = dict.fromkeys((one.type, one.value) for one in identifiers if is_sent(one, verdicts))
    return [{"type": kind, "value": value} for kind, value in chosen]


def to_v2(
    entries: Iterable[RawIdentifier],
    residue: Mapping[str, Any],
    kinds: Kinds = STANDARD_KINDS,
    verdicts: AbstractSet[str] = GOOD,
) -> dict[str, Any]:
    """The flat fields of a record from v3's list and its residue; null if there is no value.

    A field's residue counts while the list still has every value that was made from it; after a change in v3, the change counts. Several
    values of one type are joined in one field with `; `.
    """
    fields: dict[str, Any] = {field: None for field, _kind in kinds.fields}
    listed = dict.fromkeys((entry["type"], entry["value"]) for entry in entries)
    remaining = dict(listed)
    for field, raw in residue.items():
        produced = {(entry["type"], entry["value"]) for entry in entries_of(identify({field: raw}, kinds), verdicts)}
        if produced <= listed.keys():
            fields[field] = raw
            for pair in produced:
                remaining.pop(pair, None)
    for kind, value in remaining:
        field = kinds.homes.get(kind, kind)
        before = fields.get(field)
        fields[field] = value if before is None or before == "" else f"{text_of(before)}; {value}"
    return fields
