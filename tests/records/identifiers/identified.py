"""The identifiers of a whole record, and the list of version 3 that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import read_entry, read_fields, type_and_value
from pipelines.records.identifiers.verdicts import GOOD, Identifier
from pipelines.records.tables.publication_fields import IDENTIFIER_LIST


def identify(record: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS) -> list[Identifier]:
    """Every identifier of a record of either version, flat fields first."""
    identifiers: list[Identifier] = []
    read_fields(record, identifiers, kinds)
    entries = record.get(IDENTIFIER_LIST)
    for entry in entries if isinstance(entries, list) else ():
        read_entry(*type_and_value(entry), identifiers, kinds)
    return identifiers


def entries_of(identifiers: Iterable[Identifier]) -> list[dict[str, str]]:
    """Each good identifier once, in the order of the record."""
    chosen = dict.fromkeys(
        (identifier.type, identifier.value) for identifier in identifiers if identifier.verdict in GOOD
    )
    return [{"type": kind, "value": value} for kind, value in chosen]
