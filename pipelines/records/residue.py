"""Residue: the parts of a record that no column takes (I6). They stand as JSON beside the columns, and are counted by key for the manifest.

Addresses of files are the exception. They are signed, so anybody who has one may fetch the file (I10), and they change in every response.
They are left out by name at any depth, and any other address that looks signed loses its signature. The raw payload has all of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pipelines.records.values import compact_json, valid_text

ADDRESSES = frozenset({"url", "thumb_url", "preview_url"})
"""Addresses of files in responses (service.md#assets); ignored by name."""

IGNORED = ADDRESSES | {"avatar_url", "avatar_thumb_url", "avatar_preview_url"}
"""Addresses of files, and the names that the address of a person's picture may have."""

PICTURES = frozenset({"cover", "avatar"})
"""Keys under which a service may send the bare address of a picture instead of an object."""

MAX_RESIDUE_KEYS = 1000
"""Number of residue keys that are counted one by one; the rest are counted together (I13)."""

MAX_KEY_CHARACTERS = 200
"""Length of a residue key in the counts (I13); the residue itself has the whole key."""

MAX_DEPTH = 200
"""Depth to which the residue is searched for addresses; deeper values are left out."""

_NESTED = (dict, list)
_POSITIONS = re.compile(r"\[\d+\]")
_ADDRESS = re.compile(r"https?://[^\s\"\\]+", re.IGNORECASE)
_SIGNATURE = re.compile(r"x-(?:amz|goog|oss)-|signature=|sig=|token=|key-pair-id=", re.IGNORECASE)


def nested_residue(nested: dict[str, Any], known_keys: AbstractSet[str], where: str, residue: dict[str, Any]) -> None:
    """Put into the residue the members of a nested object that no rule names, each under its path."""
    if not nested.keys() <= known_keys:
        for key, value in nested.items():
            if key not in known_keys:
                keep_nested(residue, f"{where}.{key}", value)


def keep_nested(residue: dict[str, Any], key: str, value: object) -> str:
    """Keep a nested value under its path, even if the record has a key of its own that looks like that path. Returns the key."""
    while key in residue:
        key += "'"
    residue[key] = value
    return key


def residue_json(residue: dict[str, Any]) -> str | None:
    """The residue column of one record: keys in a fixed order, so that equal residues are equal text, and no signed address."""
    return _unsigned_json(dict(sorted(residue.items()))) if residue else None


def record_json(record: dict[str, Any]) -> str:
    """A whole record for display, without addresses of files and without signatures (I10)."""
    return _unsigned_json({key: value for key, value in record.items() if key not in IGNORED})


def _unsigned_json(record: dict[str, Any]) -> str:
    return without_signatures(compact_json({key: _display_value(key, value) for key, value in record.items()}))


def without_signatures(text: str) -> str:
    """A text whose addresses have no signatures (I10)."""
    return _ADDRESS.sub(_unsigned, text) if "://" in text else text


def _unsigned(address: re.Match[str]) -> str:
    path, sign, query = address[0].partition("?")
    return f"{path}?(signed)" if sign and _SIGNATURE.search(query) else address[0]


def _display_value(key: str, value: Any) -> Any:
    if key in PICTURES and type(value) is str and "://" in value:
        return "(address; the payload has it)"
    return without_addresses(value)


def without_addresses(value: Any, depth: int = MAX_DEPTH) -> Any:
    """A nested value without the members that are addresses of files."""
    if type(value) not in _NESTED:
        return value
    if depth == 0:
        return "(nested too deeply; the payload has it)"
    if type(value) is list:
        return [without_addresses(member, depth - 1) if type(member) in _NESTED else member for member in value]
    return {
        key: without_addresses(member, depth - 1) if type(member) in _NESTED else member
        for key, member in value.items()
        if key not in IGNORED
    }


def residue_counts(residues: Sequence[dict[str, Any]]) -> Counter[str]:
    """Residue key, without positions in lists → number of records that have it. Records with the same keys are counted together."""
    counts = Counter[str]()
    for keys, records in Counter(tuple(residue) for residue in residues if residue).items():
        for key in sorted({valid_text(_POSITIONS.sub("[]", key[:MAX_KEY_CHARACTERS])) for key in keys}):
            counts[key] += records
    return counts


def bounded(counts: Counter[str]) -> Counter[str]:
    """The most frequent residue keys, and the rest under one name: a hostile library must not fill the manifest."""
    if len(counts) <= MAX_RESIDUE_KEYS:
        return counts
    frequent = Counter(dict(counts.most_common(MAX_RESIDUE_KEYS)))
    frequent["(other keys)"] += counts.total() - frequent.total()
    return frequent
