"""The conversion of v2's flat fields to v3's list, with the smallest residue from which `to_v2` rebuilds the fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import RawIdentifier, entries_of, identify, to_v2


def to_v3(record: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS) -> tuple[list[RawIdentifier], dict[str, Any]]:
    """The list for v3 from a record of v2, and the residue: the fields that cannot be rebuilt from the list alone."""
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
