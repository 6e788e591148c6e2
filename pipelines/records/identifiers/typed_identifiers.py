"""Whole records: the identifiers of v2's flat fields and of v3's list, what v3 is sent, and v2's fields again from v3's list (I7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pipelines.publication_fields import IDENTIFIER_LIST
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import GOOD, Identifier
from pipelines.records.values import text_of

_new = tuple.__new__
"""Makes a named tuple in half the time, where there are two of them in every record."""

RawIdentifier = dict[str, str]
"""One entry of v3's list: type and value."""


def identify(record: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS) -> list[Identifier]:
    """Every identifier of a record of either version, fields first. Takes any JSON."""
    found: list[Identifier] = []
    read_fields([record.get(field) for field, _kind in kinds.fields], found, kinds)
    entries = record.get(IDENTIFIER_LIST)
    if type(entries) is list:
        for entry in entries:
            read_entry(*type_and_value(entry), found, kinds)
    return found


def read_fields(values: Iterable[Any], found: list[Identifier], kinds: Kinds) -> None:
    """Add to `found` the identifiers of a record's flat fields; `values` has what each of `kinds.fields` holds."""
    for (field, kind), value in zip(kinds.fields, values, strict=True):
        if value is None or value == "":
            continue
        if type(value) is str:
            quick = kind.read_clean(value)
            if quick is not None:
                name, identifier, verdict, rule = quick
                found.append(_new(Identifier, (name, identifier, value, field, len(found), verdict, rule)))
                continue
        for one in value if type(value) is list else (value,):
            raw = text_of(one) or ""
            _append(found, kinds.read(kind.name, raw), raw, field)


def read_entry(kind: str, raw: str, found: list[Identifier], kinds: Kinds) -> bool:
    """Add to `found` the identifiers of an entry of v3's list; tells whether all of them are of the type that it names."""
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


def entries_of(identifiers: Iterable[Identifier], verdicts: AbstractSet[str] = GOOD) -> list[RawIdentifier]:
    """What v3 is sent: each identifier with one of these verdicts once, in the order of the record."""
    chosen = dict.fromkeys((one.type, one.value) for one in identifiers if one.verdict in verdicts)
    return [{"type": kind, "value": value} for kind, value in chosen]


def to_v3(
    record: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS, verdicts: AbstractSet[str] = GOOD
) -> tuple[list[RawIdentifier], dict[str, Any]]:
    """The list that v3 is sent for a record of v2, and the residue: the fields that the list alone does not give back."""
    flat = {field: record.get(field) for field, _kind in kinds.fields}
    entries = entries_of(identify(flat, kinds), verdicts)
    residue: dict[str, Any] = {}
    while True:
        rebuilt = to_v2(entries, residue, kinds, verdicts)
        lost = {
            field: value
            for field, value in flat.items()
            if value is not None and field not in residue and rebuilt[field] != value
        }
        if not lost:
            return entries, residue
        residue |= lost


def to_v2(
    entries: Iterable[RawIdentifier],
    residue: Mapping[str, Any],
    kinds: Kinds = STANDARD_KINDS,
    verdicts: AbstractSet[str] = GOOD,
) -> dict[str, Any]:
    """The flat fields of a record from v3's list and its residue; null where there is nothing.

    A field's residue holds as long as everything that was made of it still stands in the list; once somebody has changed that in v3, the
    change counts. Several values of one type stand in one field with `; ` between them.
    """
    fields: dict[str, Any] = {field: None for field, _kind in kinds.fields}
    listed = dict.fromkeys((entry["type"], entry["value"]) for entry in entries)
    left = dict(listed)
    for field, raw in residue.items():
        made = {(one["type"], one["value"]) for one in entries_of(identify({field: raw}, kinds), verdicts)}
        if made <= listed.keys():
            fields[field] = raw
            for one in made:
                left.pop(one, None)
    for kind, value in left:
        field = kinds.homes.get(kind, kind)
        before = fields.get(field)
        fields[field] = value if before is None or before == "" else f"{text_of(before)}; {value}"
    return fields
