"""Whether the values of a record are in what was staged of it (I6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

import pyarrow as pa

from pipelines.records.residue import IGNORED


def lost(record: Any, batches: Iterable[pa.RecordBatch]) -> list[Any]:
    """The scalars of a record that are in none of these rows, whatever their column; addresses are not looked for."""
    held = {text for batch in batches for row in batch.to_pylist() for text in _texts(row)}
    return [value for value in scalars(record) if _text(value) not in held and "://" not in _text(value)]


def scalars(value: Any, key: str = "") -> Iterator[Any]:
    if key in IGNORED or value is None or value == "":
        return
    if isinstance(value, dict):
        for name, member in value.items():
            yield from scalars(member, name)
    elif isinstance(value, list):
        for entry in value:
            yield from scalars(entry)
    else:
        yield value


def _texts(row: dict[str, Any]) -> Iterator[str]:
    """Every scalar of a row as text, those inside of JSON, too."""
    for value in row.values():
        if value is None:
            continue
        yield _text(value)
        if isinstance(value, str):
            try:
                inner = json.loads(value)
            except ValueError:
                continue
            yield from map(_text, scalars(inner))


def _text(value: Any) -> str:
    """A scalar as text; equal numbers are equal text, also those of ids that are texts of digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(float(value)) if abs(value) < 2**53 else repr(value)
    return value.isoformat() if isinstance(value, date) else str(value)
