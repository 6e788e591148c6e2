"""The conversion of v2's flat fields to v3's list and back: I7 says that list and residue have all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import identify, is_sent
from pipelines.records.identifiers.verdicts import GOOD, Identifier
from pipelines.records.values import text_of

RawIdentifier = dict[str, str]
"""One entry of v3's list: type and value."""


def to_v3(record: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS) -> tuple[list[RawIdentifier], dict[str, Any]]:
    """The list for v3 from a record of v2, and the smallest residue from which `to_v2` rebuilds the fields."""
    flat = {field: record.get(field) for field, _kind in kinds.fields}
    entries = entries_of(identify(flat, kinds))
    residue: dict[str, Any] = {}
    while True:
        rebuilt = to_v2(entries, residue, kinds)
        lost = {
            field: value
            for field, value in flat.items()
            if value is not None and field not in residue and rebuilt[field] != value
        }
        if not lost:
            return entries, residue
        residue |= lost


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
